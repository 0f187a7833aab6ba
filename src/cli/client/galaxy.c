/* The request is a file in memory, so that a program that does not read it cannot block the caller; the
 * answer is read until its end, within limits of time and size. */
#include "cli/client/galaxy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/program.h"
#include "cli/terminal/view.h"
#include "jdl/script/script.h"

#define PROGRAM    "drover-galaxy"
#define ANSWER_MS  60000
#define ANSWER_MAX (16u << 20)

static int galaxy_write_question(const struct galaxy_submit *g, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};
        int fd = memfd_create(PROGRAM, MFD_CLOEXEC), r;

        json_open(&j, '{');
        json_kstrz(&j, "tool", g->tool);
        json_kstrz(&j, "params", g->params);
        json_kstrz(&j, "tables", g->tables);
        json_kstrz(&j, "resolve", g->resolve);
        json_close(&j, '}');
        buf_char(&text, '\n');
        if (fd < 0)
                return err_set(err, -errno, "%s cannot be asked: %s", PROGRAM, strerror(errno));
        r = fs_write_all(fd, text.p, text.n);
        if (r == 0 && lseek(fd, 0, SEEK_SET) == 0)
                return fd;
        close(fd);
        return err_set(err, r ? r : -EIO, "%s cannot be asked", PROGRAM);
}

static int galaxy_start(int in, int out, pid_t *ret, struct err *err)
{
        BUF_CLEANUP struct buf path = {0};
        char *argv[] = {(char *)PROGRAM, NULL};
        posix_spawn_file_actions_t files;
        int r = program_find(PROGRAM, &path, err);

        if (r != 0)
                return r;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        r = posix_spawn(ret, buf_z(&path), &files, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&files);
        return r ? err_set(err, -r, "%s: %s", buf_z(&path), strerror(r)) : 0;
}

static int galaxy_read_answer(int fd, struct buf *ret, struct err *err)
{
        int64_t until_ms = clock_boot_ms() + ANSWER_MS;

        for (;;) {
                struct pollfd ready = {.fd = fd, .events = POLLIN};
                int64_t left_ms = until_ms - clock_boot_ms();
                char bytes[16384];
                ssize_t n;

                if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) == 0)
                        return err_set(err, -ETIMEDOUT, "%s did not answer within %d s", PROGRAM,
                                       ANSWER_MS / 1000);
                n = read(fd, bytes, sizeof(bytes));
                if (n == 0)
                        return 0;
                if (n < 0 && errno != EINTR)
                        return err_set(err, -errno, "%s: %s", PROGRAM, strerror(errno));
                if (n > 0 && ret->n + (size_t)n > ANSWER_MAX)
                        return err_set(err, -E2BIG, "%s answered with more than %u MiB", PROGRAM,
                                       ANSWER_MAX >> 20);
                if (n > 0)
                        buf_add(ret, bytes, (size_t)n);
        }
}

/* 0: it has ended well, and this is what it has printed. */
static int ask_program(const struct galaxy_submit *g, struct buf *ret, struct err *err)
{
        int in = galaxy_write_question(g, err), out[2], status = 0, r;
        pid_t pid = 0;

        if (in < 0)
                return in;
        if (pipe2(out, O_CLOEXEC) < 0) {
                close(in);
                return err_set(err, -errno, "%s cannot be asked: %s", PROGRAM, strerror(errno));
        }
        r = galaxy_start(in, out[1], &pid, err);
        close(in);
        close(out[1]);
        if (r == 0)
                r = galaxy_read_answer(out[0], ret, err);
        close(out[0]);
        if (r != 0 && pid)
                kill(pid, SIGKILL);
        while (pid && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                continue;
        if (r == 0 && status != 0)
                r = err_set(err, -EIO, "%s failed: it %s %d", PROGRAM,
                            WIFEXITED(status) ? "ended with status" : "was killed by signal",
                            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        return r;
}

static void take_warnings(struct view all, struct form *ret)
{
        struct view one;

        for (size_t at = 0; view_next(all, &at, &one);) {
                BUF_CLEANUP struct buf text = {0};

                view_text(view_get(one, "text"), &text);
                form_warn(ret, (unsigned)view_integer(view_get(one, "line"), 0), "%s", buf_z(&text));
        }
}

int galaxy_read(const struct form_world *w, const struct galaxy_submit *g, const struct condor_options *o,
                struct form *ret, struct buf *ret_command, struct err *err)
{
        BUF_CLEANUP struct buf answer = {0}, error = {0}, description = {0}, script = {0};
        int r = ask_program(g, &answer, err);
        struct view v = view_of(buf_view(&answer)), lines = view_get(v, "description"),
                    job = view_get(v, "script");

        if (r != 0)
                return r;
        take_warnings(view_get(v, "warnings"), ret);
        view_text(view_get(v, "error"), &error);
        if (error.n)
                return err_set(err, -EINVAL, "%s", buf_z(&error));
        if (view_type(lines) != VIEW_STRING || view_type(job) != VIEW_STRING)
                return err_set(err, -EIO, "%s printed no answer; are both of the same version?", PROGRAM);
        view_text(lines, &description);
        view_text(job, &script);
        view_text(view_get(v, "command"), ret_command);
        return script_job(w, g->tool, buf_view(&description), buf_view(&script), NULL, o, ret, err);
}
