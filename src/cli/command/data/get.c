/* drover get: first lists the files of all ids, to find names that are used twice; then fetches one file
 * after the other under a temporary name, which is renamed when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/url.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "cli/client/api.h"
#include "cli/client/ids.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {
        {"JOB", true, false}, {"SIZE", true, false}, {"NAME", false, true}};

struct file {
        char *job, *name;
        int64_t size, mode;
        bool shared; /* another job has a file with this name */
};
struct fetch {
        struct cli *cli;
        struct file *files;
        size_t count, cap;
        struct id id;     /* the id that is being listed */
        const char *only; /* the job, if the listing does not name it: "7.42" */
        int dirfd;
        int64_t bytes;
};

static int get_add_file(void *arg, struct view item)
{
        struct fetch *f = arg;
        struct buf text BUF_CLEANUP = {0};
        struct file file = {.size = view_integer(view_get(item, "size"), 0),
                            .mode = view_integer(view_get(item, "mode"), 0644)};
        struct err err;
        struct id id;

        if (f->only)
                buf_addz(&text, f->only);
        else
                view_text(view_get(item, "job"), &text);
        if (!f->id.whole &&
            (id_parse(buf_view(&text), &id, &err) != 0 || id.first < f->id.first || id.last > f->id.last))
                return 0;
        file.job = buf_take(&text);
        view_text(view_get(item, "name"), &text);
        file.name = buf_take(&text);
        MEM_GROW(f->files, f->cap, f->count + 1);
        f->files[f->count++] = file;
        return 0;
}

static int list_id(struct fetch *f, const char *word)
{
        struct buf path BUF_CLEANUP = {0};
        struct api_list l = {
                .path = &path, .array = "files", .cursor = "after", .each = get_add_file, .arg = f};
        struct err err;

        if (id_parse(str_of(word), &f->id, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        f->only = f->id.whole || f->id.first != f->id.last ? NULL : word;
        if (f->only) {
                buf_printf(&path, "/v1/jobs/%s/files", word);
                l.cursor = NULL;
        } else {
                buf_printf(&path, "/v1/requests/%llu/files", (unsigned long long)f->id.request);
        }
        return api_list(f->cli, &l);
}

/* Marks names that more than one job uses. */
static void find_shared(struct fetch *f)
{
        struct map *seen = map_new();

        for (size_t i = 0; i < f->count; i++) {
                struct file *other = map_get(seen, str_of(f->files[i].name));

                if (!other)
                        map_put(seen, str_of(f->files[i].name), &f->files[i]);
                else if (strcmp(other->job, f->files[i].job) != 0)
                        other->shared = f->files[i].shared = true;
        }
        map_free(seen);
}

/* Returns whether the name is a relative path without empty, "." or ".." parts. */
static bool name_is_safe(const char *name)
{
        struct str rest = str_of(name), part;

        if (rest.n == 0)
                return false;
        while (str_cut(&rest, '/', &part))
                if (part.n == 0 || str_eqz(part, ".") || str_eqz(part, ".."))
                        return false;
        return true;
}

/* Returns whether the file would be a hidden one in the home folder. An agent can claim that a job has
 * made any file, and programs read hidden files there: a shell its settings, sshd its keys. */
static bool is_hidden_at_home(const struct fetch *f, const char *name)
{
        const char *home = getenv("HOME");
        struct stat here, there;

        return (name[0] == '.' || strstr(name, "/.")) && home && fstat(f->dirfd, &here) == 0 &&
               stat(home, &there) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static int download(struct fetch *f, const struct file *file, int fd, struct err *err)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        int rc;

        buf_printf(&path, "/v1/jobs/%s/files/", file->job);
        url_escape(&path, str_of(file->name));
        rc = api_call(
                f->cli,
                &(struct api_request){.path = buf_z(&path), .timeout_ms = 3600000, .to_file = true, .fd = fd},
                &answer, err);
        if (rc != 0)
                return api_exit(rc, &answer);
        if (answer.written != (uint64_t)file->size)
                return err_set(err, CLI_FAILED, "%llu bytes of %lld were received",
                               (unsigned long long)answer.written, (long long)file->size);
        f->bytes += file->size;
        return 0;
}

/* Opens the folder for the file, and makes it if it is missing; *ret_name is the last component of the
 * name. */
static int open_folder(struct fetch *f, const struct file *file, struct buf *path, const char **ret_name)
{
        ptrdiff_t slash;

        if (file->shared)
                buf_printf(path, "%s/", file->job);
        buf_addz(path, file->name);
        slash = str_rfind(buf_view(path), '/');
        if (slash > 0) {
                struct buf folder BUF_CLEANUP = {0};
                int rc;

                buf_str(&folder, str_head(buf_view(path), (size_t)slash));
                rc = fs_mkdirs_beneath(f->dirfd, buf_z(&folder), 0777);
                if (rc != 0)
                        return rc;
        }
        return fs_open_parent(f->dirfd, buf_z(path), ret_name);
}

static int fetch_file(struct fetch *f, const struct file *file)
{
        struct buf path BUF_CLEANUP = {0}, part BUF_CLEANUP = {0};
        struct err err = {""};
        const char *name;
        int folder, fd, code;

        if (!name_is_safe(file->name))
                return cli_error(CLI_FAILED, "%s: not fetched: the name \"%s\" leads out of the folder",
                                 file->job, file->name);
        if (is_hidden_at_home(f, file->name))
                return cli_error(
                        CLI_FAILED,
                        "%s: not fetched: \"%s\" would be hidden in your home folder: name another one "
                        "with --output",
                        file->job, file->name);
        folder = open_folder(f, file, &path, &name);
        if (folder < 0)
                return cli_error(CLI_FAILED, "%s: %s", buf_z(&path), strerror(-folder));
        buf_printf(&part, ".%s.part-%d", name, (int)getpid());
        unlinkat(folder, buf_z(&part), 0);
        fd = openat(folder, buf_z(&part), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0) {
                code = cli_error(CLI_FAILED, "%s: %s", buf_z(&path), strerror(errno));
                close(folder);
                return code;
        }
        code = download(f, file, fd, &err);
        if (code == 0) {
                mode_t mask = umask(0);

                umask(mask);
                fchmod(fd, (mode_t)file->mode & 0777 & ~mask);
                if (renameat(folder, buf_z(&part), folder, name) != 0)
                        code = err_set(&err, CLI_FAILED, "%s", strerror(errno));
        }
        if (code != 0) {
                unlinkat(folder, buf_z(&part), 0);
                cli_error(code, "%s: %s", buf_z(&path), err.text);
        }
        close(fd);
        close(folder);
        return code;
}

static void print_list(struct fetch *f)
{
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, 3);
        for (size_t i = 0; i < f->count; i++) {
                struct buf size BUF_CLEANUP = {0};

                table_text(&t, str_of(f->files[i].job));
                human_bytes(&size, f->files[i].size);
                table_text(&t, buf_view(&size));
                table_text(&t, str_of(f->files[i].name));
        }
        cli_print_table(f->cli, &t);
}

static int fetch_all(struct fetch *f, const char *to)
{
        struct buf out BUF_CLEANUP = {0};
        int code = 0, one;

        one = fs_mkdirs(to, 0777);
        if (one != 0)
                return cli_error(CLI_FAILED, "%s: %s", to, strerror(-one));
        f->dirfd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (f->dirfd < 0)
                return cli_error(CLI_FAILED, "%s: %s", to, strerror(errno));
        find_shared(f);
        for (size_t i = 0; i < f->count; i++) {
                one = fetch_file(f, &f->files[i]);
                code = code ? code : one;
        }
        close(f->dirfd);
        human_count(&out, (int64_t)f->count, "file, ", "files, ");
        human_bytes(&out, f->bytes);
        buf_addz(&out, code ? ", not all of them" : "");
        buf_char(&out, '\n');
        cli_print(&out);
        return code;
}

int cmd_get(struct cli *cli, const struct options *o)
{
        const char *to = options_text(o, "output");
        struct fetch f = {.cli = cli, .dirfd = -1};
        int code = 0;

        if (cli->json && (!options_flag(o, "list") || o->word_count > 1))
                return cli_error(CLI_USAGE, "--json goes with --list and one id");
        for (size_t i = 0; code == 0 && i < o->word_count; i++)
                code = list_id(&f, o->words[i]);
        if (code == 0 && !cli->json) {
                if (f.count == 0)
                        cli_note("the server keeps no files of that: jobs that can reach your folder write "
                                 "there "
                                 "themselves");
                else if (options_flag(o, "list"))
                        print_list(&f);
                else
                        code = fetch_all(&f, to ? to : ".");
        }
        for (size_t i = 0; i < f.count; i++) {
                free(f.files[i].job);
                free(f.files[i].name);
        }
        free(f.files);
        return code;
}
