/* The program is the leader of a process group, which is killed when it says too much or too little. Its
 * question is a file in memory, so that one that does not read it harms nobody. Each line is looked at when
 * it is there, so that no more than a line is kept. */
#include "cli/client/catalog_program.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/program.h"
#include "cli/client/catalog_files.h"

#define SITE_FOLDER    "/etc/drover/catalogs"
#define NAME_MAX_BYTES 64

struct asking {
        const char *name, *order;
        void (*fn)(void *to, const struct form_found *f);
        void *to;
        struct arena arena;
        struct form_replica replicas[CATALOG_REPLICAS_MAX];
        uint64_t lines, files;
        bool ended;
        struct err *err;
};

static int fail_program(const struct asking *a, int rc, const char *what)
{
        return err_set(a->err, rc, "catalog %s: %s", a->name, what);
}

static int fail_line(const struct asking *a, const char *what)
{
        return err_set(a->err, -EIO, "catalog %s: line %llu of what it printed %s", a->name,
                       (unsigned long long)a->lines, what);
}

static bool catalog_program_is_name(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!isalnum((unsigned char)s.p[i]) && (i == 0 || !strchr("-_", s.p[i])))
                        return false;
        return s.n > 0 && s.n <= NAME_MAX_BYTES;
}

static int catalog_program_find(struct str name, struct buf *path, struct err *err)
{
        const char *const folders[] = {getenv("DROVER_CATALOGS"), SITE_FOLDER};
        MEM_CLEANUP char *z = str_dupz(str_head(name, 200));

        for (size_t i = 0; i < 2 && catalog_program_is_name(name); i++) {
                buf_reset(path);
                buf_printf(path, "%s/%s", folders[i] ? folders[i] : "", z);
                if (folders[i] && access(buf_z(path), X_OK) == 0)
                        return 0;
        }
        buf_reset(path);
        if (catalog_program_is_name(name) && program_shipped("catalogs", z, path, NULL) == 0)
                return 0;
        return err_set(err, -ENOENT,
                       "there is no catalog \"%s\": it would be a program in " SITE_FOLDER
                       ", or in the folder that DROVER_CATALOGS names; the server's own is catalog:?QUERY",
                       z);
}

static int catalog_program_write_question(const struct asking *a, struct str query, bool events)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};
        int fd = memfd_create("query", MFD_CLOEXEC), r;

        json_open(&j, '{');
        json_kstr(&j, "query", query);
        json_kbool(&j, "events", events);
        json_kstrz(&j, "order", a->order);
        json_close(&j, '}');
        buf_char(&text, '\n');
        if (fd < 0)
                return fail_program(a, -errno, strerror(errno));
        r = fs_write_all(fd, text.p, text.n);
        if (r == 0 && lseek(fd, 0, SEEK_SET) == 0)
                return fd;
        close(fd);
        return fail_program(a, -EIO, "it cannot be asked");
}

static int catalog_program_start(const struct asking *a, const char *path, int in, int out, pid_t *ret)
{
        char *argv[] = {(char *)path, NULL};
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;
        int r;

        posix_spawn_file_actions_init(&files);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        r = posix_spawn(ret, path, &files, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&files);
        return r ? fail_program(a, -r, strerror(r)) : 0;
}

/* ---- what it prints */

static bool catalog_program_is_text(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
                        return false;
        return true;
}

static int take_file(struct asking *a, struct view line)
{
        struct view size = view_get(line, "size");
        struct form_found f;

        if (view_type(view_get(line, "replicas")) != VIEW_ARRAY)
                return fail_line(a, "is not a file: it has no list of replicas");
        if (view_there(size) && (view_type(size) != VIEW_NUMBER || view_integer(size, -1) < 0))
                return fail_line(a, "has a size that is not a whole number");
        catalog_file_read(line, a->order, &a->arena, &f, a->replicas);
        for (size_t i = 0; i < f.replica_count; i++) {
                if (str_find(f.replicas[i].url, ':') < 1)
                        return fail_line(a, "has a replica without a URL");
                if (!catalog_program_is_text(f.replicas[i].url) ||
                    !catalog_program_is_text(f.replicas[i].host) ||
                    !catalog_program_is_text(f.replicas[i].store) || str_find(f.replicas[i].host, ',') >= 0)
                        return fail_line(a, "has a control character, or a comma in the name of a host");
        }
        a->files++;
        a->fn(a->to, &f);
        arena_reset(&a->arena);
        return 0;
}

static int catalog_program_take_line(struct asking *a, struct str text)
{
        struct view line;

        a->lines++;
        text = str_trim(text);
        if (text.n == 0)
                return 0;
        if (a->ended)
                return fail_line(a, "comes after its end");
        line = view_of(text);
        if (view_type(line) != VIEW_OBJECT || line.text.n != text.n)
                return fail_line(a, "is not a JSON object");
        if (view_there(view_get(line, "error"))) {
                BUF_CLEANUP struct buf what = {0}, safe = {0};

                view_text(view_get(line, "error"), &what);
                for (size_t i = 0; i < what.n && i < 300; i++)
                        buf_char(&safe, (unsigned char)what.p[i] < ' ' ? ' ' : what.p[i]);
                return fail_program(a, -EIO, buf_z(&safe));
        }
        if (!view_there(view_get(line, "end")))
                return take_file(a, line);
        a->ended = true;
        return view_integer(view_get(line, "end"), -1) == (int64_t)a->files
                       ? 0
                       : fail_line(a, "says another number of files than it has printed");
}

static int catalog_program_read_answer(struct asking *a, int fd)
{
        BUF_CLEANUP struct buf kept = {0};
        int64_t until_ms = clock_boot_ms() + CATALOG_PROGRAM_MS;
        uint64_t total = 0;

        for (;;) {
                struct pollfd ready = {.fd = fd, .events = POLLIN};
                int64_t left_ms = until_ms - clock_boot_ms();
                char bytes[65536];
                struct str rest, line;
                ssize_t n;
                int rc = 0;

                if (left_ms <= 0)
                        return fail_program(a, -ETIMEDOUT, "it took more than ten minutes");
                if (poll(&ready, 1,
                         left_ms < CATALOG_PROGRAM_QUIET_MS ? (int)left_ms : CATALOG_PROGRAM_QUIET_MS) == 0)
                        return fail_program(a, -ETIMEDOUT, "it printed nothing for 30 seconds");
                n = read(fd, bytes, sizeof(bytes));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return fail_program(a, -errno, strerror(errno));
                if (n == 0)
                        break;
                total += (uint64_t)n;
                if (total > CATALOG_PROGRAM_MAX)
                        return fail_program(a, -E2BIG, "it printed more than 512 MiB");
                buf_add(&kept, bytes, (size_t)n);
                rest = buf_view(&kept);
                while (rc == 0 && str_find(rest, '\n') >= 0 && str_cut(&rest, '\n', &line))
                        rc = catalog_program_take_line(a, line);
                if (rc == 0 && rest.n > CATALOG_PROGRAM_LINE_MAX)
                        rc = fail_program(a, -E2BIG, "it printed a line of more than a MiB");
                if (rc != 0)
                        return rc;
                memmove(kept.p, rest.p, rest.n);
                buf_truncate(&kept, rest.n);
        }
        if (str_trim(buf_view(&kept)).n) {
                int rc = catalog_program_take_line(a, buf_view(&kept));

                if (rc != 0)
                        return rc;
        }
        return a->ended ? 0 : fail_program(a, -EIO, "it ended without saying {\"end\": N}");
}

/* Waits for the program, which has closed its output or is killed. */
static int catalog_program_end(pid_t pid, int *ret_status)
{
        int64_t until_ms = clock_boot_ms() + CATALOG_PROGRAM_END_MS;
        bool killed = false;
        pid_t got;

        while ((got = waitpid(pid, ret_status, killed ? 0 : WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
                if (got == 0 && clock_boot_ms() < until_ms) {
                        poll(NULL, 0, 10);
                } else if (got == 0) {
                        kill(-pid, SIGKILL);
                        killed = true;
                }
        }
        return killed ? -ETIMEDOUT : 0;
}

static int run_program(struct asking *a, const char *path, struct str query, bool events)
{
        int in = catalog_program_write_question(a, query, events), out[2], status = 0, rc;
        pid_t pid = 0;

        if (in < 0)
                return in;
        if (pipe2(out, O_CLOEXEC) < 0) {
                rc = fail_program(a, -errno, strerror(errno));
                close(in);
                return rc;
        }
        rc = catalog_program_start(a, path, in, out[1], &pid);
        close(in);
        close(out[1]);
        if (rc == 0)
                rc = catalog_program_read_answer(a, out[0]);
        close(out[0]);
        if (pid && rc != 0)
                kill(-pid, SIGKILL);
        if (pid && catalog_program_end(pid, &status) != 0 && rc == 0)
                rc = fail_program(a, -ETIMEDOUT, "it has printed all, and does not end");
        if (rc == 0 && status != 0)
                rc = fail_program(a, -EIO, "it ended with a failure");
        return rc;
}

int catalog_program_files(struct str name, struct str query, bool events, const char *order,
                          void (*fn)(void *to, const struct form_found *f), void *to, struct err *err)
{
        BUF_CLEANUP struct buf path = {0};
        MEM_CLEANUP char *z = str_dupz(str_head(name, NAME_MAX_BYTES));
        struct asking *a;
        int rc = catalog_program_find(name, &path, err);

        if (rc != 0)
                return rc;
        a = mem_new(struct asking);
        *a = (struct asking){.name = z, .order = order, .fn = fn, .to = to, .err = err};
        rc = run_program(a, buf_z(&path), query, events);
        arena_deinit(&a->arena);
        free(a);
        return rc;
}
