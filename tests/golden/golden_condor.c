/* Runs the submit files, DAG files, descriptions of SUMS, or composite requests in RDL, of a folder and
 * compares what they become with what is kept beside them.
 *
 * A line "#-a TEXT" in a submit file is an option -a TEXT. The world is always the same: files are those of
 * the folder, the environment is the one below, and the time stands still. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jdl/condor/condor.h"
#include "jdl/dag/dag.h"
#include "jdl/form/form_json.h"
#include "jdl/rdl/rdl.h"

static int read_file(void *arg, const char *path, struct buf *ret)
{
        char chunk[4096];
        ssize_t n;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        (void)arg;
        if (fd < 0)
                return -errno;
        while ((n = read(fd, chunk, sizeof(chunk))) > 0)
                buf_add(ret, chunk, (size_t)n);
        close(fd);
        return n < 0 ? -EIO : 0;
}

static int find(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path), void *to)
{
        glob_t g;

        (void)arg;
        if (glob(pattern, GLOB_MARK, NULL, &g) != 0)
                return 0;
        for (size_t i = 0; i < g.gl_pathc; i++) {
                struct str path = str_of(g.gl_pathv[i]);

                if (want == 'a' || (want == 'd') == str_ends(path, STR("/")))
                        each(to, path);
        }
        globfree(&g);
        return 0;
}

static const char *const environment[] = {"HOME=/home/ann",
                                          "LANG=C.UTF-8",
                                          "PATH=/usr/bin:/bin",
                                          "APP_MODE=two words",
                                          "APP_KEY=it's",
                                          "ODD=a$(x)b",
                                          NULL};

static const char *get(void *arg, const char *name)
{
        size_t n = strlen(name);

        (void)arg;
        for (const char *const *v = environment; *v; v++)
                if (strncmp(*v, name, n) == 0 && (*v)[n] == '=')
                        return *v + n + 1;
        return NULL;
}

static int run(void *arg, const char *command, struct buf *ret_stdout)
{
        FILE *f = popen(command, "r");
        int c, status;

        (void)arg;
        if (!f)
                return -errno;
        while ((c = fgetc(f)) != EOF)
                buf_char(ret_stdout, (char)c);
        status = pclose(f);
        return status ? -ECANCELED : 0;
}

static const struct form_world world = {.read_file = read_file,
                                        .glob = find,
                                        .getenv = get,
                                        .run = run,
                                        .environment = environment,
                                        .cwd = "/home/ann/site",
                                        .now_s = 1700000000,
                                        .random = 42};

/* Four files on two hosts, of which the first is on a file server as well; none for a query that says so. */
static int catalog(void *arg, struct str catalog_name, struct str query, bool events, const char *order,
                   void (*fn)(void *to, const struct form_found *f), void *to, struct err *err)
{
        (void)arg;
        (void)err;
        (void)catalog_name;
        for (unsigned i = 0; i < 4 && str_search(query, STR("production=none")) < 0; i++) {
                char url[64], value[8];
                const struct form_replica replicas[] = {
                        {str_make(url, (size_t)snprintf(url, sizeof(url), "file:/data/f%u.MuDst.root", i)),
                         i % 2 ? STR("n2") : STR("n1"), STR("local")},
                        {STR("file:/nfs/f0.MuDst.root"), STR_NONE, STR("NFS")}};

                fn(to, &(struct form_found){
                               .bytes = 1000 + i,
                               .has_size = true,
                               .events = events ? 10 : 0,
                               .order = order ? str_make(value,
                                                         (size_t)snprintf(value, sizeof(value), "%u", 9 - i))
                                              : STR_NONE,
                               .replicas = replicas,
                               .replica_count = i == 0 ? 2 : 1});
        }
        return 0;
}

#define EXTRA_MAX 8

static size_t find_extra(struct str text, char *extra[EXTRA_MAX])
{
        struct str rest = text, line;
        size_t n = 0;

        while (n < EXTRA_MAX && str_cut(&rest, '\n', &line))
                if (str_starts(line, STR("#-a ")))
                        extra[n++] = str_dupz(str_skip(line, 4));
        return n;
}

/* One value a line, so that differences are small. */
static void indent(struct str json, struct buf *out)
{
        unsigned depth = 0;
        bool in_string = false;

        for (size_t i = 0; i < json.n; i++) {
                char c = json.p[i];
                bool closes = !in_string && (c == '}' || c == ']'),
                     opens = !in_string && (c == '{' || c == '[');

                if (c == '"' && (!in_string || json.p[i - 1] != '\\' || (i > 1 && json.p[i - 2] == '\\')))
                        in_string = !in_string;
                depth -= closes;
                if (closes)
                        buf_printf(out, "\n%*s", (int)depth, "");
                buf_char(out, c);
                depth += opens;
                if (opens || (!in_string && c == ','))
                        buf_printf(out, "\n%*s", (int)depth, "");
        }
        buf_char(out, '\n');
}

/* What a file becomes: its form as JSON (empty when it is wrong), and its warnings or error. */
static void become(const char *file, struct buf *ret_json, struct buf *ret_text)
{
        BUF_CLEANUP struct buf text = {0}, line = {0}, name = {0};
        char *extra[EXTRA_MAX];
        struct condor_options o = {.filesystem_domain = "fs.example",
                                   .submit_host = "here.example",
                                   .arch = "X86_64",
                                   .opsys = "LINUX",
                                   .extra = (const char *const *)extra};
        struct dag_summary sum = {0};
        struct sums_told told = {0};
        struct form_world with_catalog = world;
        struct form form;
        struct err err = {{0}};
        int r;

        with_catalog.catalog = catalog;
        read_file(NULL, file, &text);
        o.extra_count = find_extra(buf_view(&text), extra);
        form_init(&form);
        if (str_ends(str_of(file), STR(".dag")))
                r = dag_parse(&world, file, buf_view(&text), &(struct dag_options){.condor = &o}, &form, &sum,
                              &err);
        else if (str_ends(str_of(file), STR(".xml")))
                r = sums_parse(&with_catalog,
                               &(struct sums_job){.file = file,
                                                  .text = buf_view(&text),
                                                  .request_id = "0123456789abcdef0123456789abcdef"},
                               &o, &form, &told, &err);
        else if (str_ends(str_of(file), STR(".rdl")))
                r = rdl_parse(&world,
                              &(struct sums_job){.file = file,
                                                 .text = buf_view(&text),
                                                 .request_id = "0123456789abcdef0123456789abcdef"},
                              &o, &form, &name, &err);
        else
                r = condor_parse(&world, file, buf_view(&text), &o, &form, &err);
        for (size_t i = 0; i < form.warning_count && r == 0; i++)
                buf_printf(ret_text, "%s:%u: warning: %s\n", file, form.warnings[i].line,
                           form.warnings[i].text);
        if (r) {
                buf_printf(ret_text, "%s\n", err.text);
        } else {
                if (str_ends(str_of(file), STR(".rdl")) || str_ends(str_of(file), STR(".xml")))
                        buf_str(ret_text, buf_view(&form.notes));
                form_write_json(&line, &form, &(struct form_body){0});
                indent(buf_view(&line), ret_json);
        }
        form_deinit(&form);
        dag_files_deinit(&sum.files);
        sums_told_deinit(&told);
        for (size_t i = 0; i < o.extra_count; i++)
                free(extra[i]);
}

/* Compares with, or writes, NAME.suffix. An empty text has no file. Returns how many differ. */
static int settle(const char *file, const char *suffix, const struct buf *text, bool write_it)
{
        BUF_CLEANUP struct buf path = {0}, kept = {0};

        buf_add(&path, file, strlen(file) - 4);
        buf_addz(&path, suffix);
        if (write_it) {
                FILE *f;

                unlink(buf_z(&path));
                f = text->n ? fopen(buf_z(&path), "w") : NULL;
                if (f) {
                        fwrite(text->p, 1, text->n, f);
                        fclose(f);
                }
                return 0;
        }
        read_file(NULL, buf_z(&path), &kept);
        if (str_eq(buf_view(&kept), buf_view(text)))
                return 0;
        fprintf(stderr, "%s differs from:\n" STR_FMT "\n", buf_z(&path), STR_ARG(buf_view(text)));
        return 1;
}

static int is_submit_file(const struct dirent *d)
{
        return str_ends(str_of(d->d_name), STR(".sub")) || str_ends(str_of(d->d_name), STR(".dag")) ||
               str_ends(str_of(d->d_name), STR(".rdl")) || str_ends(str_of(d->d_name), STR(".xml"));
}

int main(int argc, char **argv)
{
        bool write_it = argc == 3 && strcmp(argv[1], "--write") == 0;
        struct dirent **list;
        int n, bad = 0;

        if ((argc != 2 && !write_it) || chdir(argv[argc - 1]) != 0) {
                fprintf(stderr, "usage: golden_condor [--write] DIR\n");
                return 2;
        }
        n = scandir(".", &list, is_submit_file, alphasort);
        for (int i = 0; i < n; i++) {
                BUF_CLEANUP struct buf json = {0}, text = {0};

                become(list[i]->d_name, &json, &text);
                bad += settle(list[i]->d_name, ".json", &json, write_it);
                bad += settle(list[i]->d_name, ".err", &text, write_it);
                free(list[i]);
        }
        free(list);
        fprintf(stderr, "%d submit files, %d differences\n", n, bad);
        return n > 0 && bad == 0 ? 0 : 1;
}
