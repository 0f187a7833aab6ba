/* A command's output goes to files in memory, which are read when it has ended, so no pipe can block it.
 * Their sizes are checked while it runs, and a file that is too large is sealed against further growth, by
 * the command or by what it has left running. */
#include "run/call/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "ev/children.h"

#define LOOK_MS 50 /* interval at which the sizes are checked */

struct process {
        struct command base;
        command_done_fn *done;
        void *arg;
        struct child *child;
        struct timer *deadline, *look;
        int out, errors; /* memory files */
        bool late, large;
        struct err err; /* set if it could not be started */
};

static void process_free(struct process *c)
{
        timer_free(c->deadline);
        timer_free(c->look);
        close(c->out);
        close(c->errors);
        free(c);
}

static void seal(const struct process *c)
{
        fcntl(c->out, F_ADD_SEALS, F_SEAL_GROW);
        fcntl(c->errors, F_ADD_SEALS, F_SEAL_GROW);
}

/* Reads a file. False: it is too large, or cannot be read. */
static bool read_all(int fd, struct buf *b)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return false;
        size_t size = st.st_size > COMMAND_OUTPUT_MAX ? COMMAND_OUTPUT_MAX : (size_t)st.st_size;
        ssize_t n = size ? pread(fd, buf_room(b, size), size, 0) : 0;
        if (n > 0)
                b->n += (size_t)n;
        return n == st.st_size;
}

static void exited(void *arg, struct child *child, int status)
{
        struct process *c = arg;
        BUF_CLEANUP struct buf out = {0}, errors = {0};

        (void)child;
        seal(c); /* processes that it left running may go on printing */
        bool whole = read_all(c->out, &out);
        read_all(c->errors, &errors);
        if (c->late)
                buf_addz(&errors, "it did not answer in time");
        else if (c->large || !whole)
                buf_printf(&errors, "it printed more than %u MiB", COMMAND_OUTPUT_MAX >> 20);
        c->done(c->arg, c->late || c->large || !whole ? -1 : status, buf_view(&out), buf_view(&errors));
        process_free(c);
}

static void process_kill(struct process *c, int signo)
{
        kill(-child_pid(c->child), signo); /* the child is not reaped before exited */
        child_kill(c->child, signo);
}

static bool is_large(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && st.st_size > COMMAND_OUTPUT_MAX;
}

static void on_look(void *arg)
{
        struct process *c = arg;

        if (is_large(c->out) || is_large(c->errors)) {
                c->large = true;
                seal(c);
                process_kill(c, SIGKILL);
        } else {
                timer_start(c->look, LOOK_MS);
        }
}

/* Ends a command at its deadline, or reports one that could not be started. */
static void on_deadline(void *arg)
{
        struct process *c = arg;

        if (c->child) {
                c->late = true;
                process_kill(c, SIGKILL);
                return;
        }
        c->done(c->arg, -1, STR(""), str_of(c->err.text));
        process_free(c);
}

int command_input(struct str input)
{
        int fd = input.n ? memfd_create("input", MFD_CLOEXEC) : -1;

        if (fd >= 0 && (fs_write_all(fd, input.p, input.n) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
                int error = errno;

                close(fd);
                errno = error;
                fd = -1;
        }
        return fd;
}

static void process_cancel(struct command *command)
{
        struct process *c = (struct process *)(void *)command;

        if (c->child) {
                seal(c);
                process_kill(c, SIGKILL);
                child_forget(c->child);
        }
        process_free(c);
}

static void process_end(struct command *command, int64_t grace_ms)
{
        struct process *c = (struct process *)(void *)command;

        if (!c->child || c->late)
                return; /* it is ending anyway */
        process_kill(c, SIGTERM);
        timer_start(c->deadline, grace_ms);
}

static void process_complaints(const struct command *command, struct buf *out)
{
        const struct process *c = (const struct process *)(const void *)command;

        read_all(c->errors, out);
}

struct command *command_run(struct loop *l, const struct args *argv, char *const *envp, struct str input,
                            int64_t timeout_ms, command_done_fn *done, void *arg)
{
        struct process *c = mem_new(struct process);

        c->base.cancel = process_cancel;
        c->base.end = process_end;
        c->base.complaints = process_complaints;
        c->done = done;
        c->arg = arg;
        c->out = memfd_create("out", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        c->errors = c->out < 0 ? -1 : memfd_create("errors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        c->deadline = timer_new(l, on_deadline, c);
        c->look = timer_new(l, on_look, c);
        struct child_spec spec = {.argv = argv->v,
                                  .envp = envp,
                                  .stdin_fd = c->errors < 0 ? -1 : command_input(input),
                                  .stdout_fd = c->out,
                                  .stderr_fd = c->errors,
                                  .die_with_parent = true,
                                  .new_session = true};
        bool lacks = c->errors < 0 || (input.n && spec.stdin_fd < 0);
        int r = lacks ? err_set(&c->err, -errno, "no files for what it reads and prints: %s", strerror(errno))
                      : child_spawn(l, &spec, exited, c, &c->child, &c->err);
        if (spec.stdin_fd >= 0)
                close(spec.stdin_fd);
        timer_start(c->deadline, r < 0 ? 0 : timeout_ms);
        if (r == 0)
                timer_start(c->look, LOOK_MS);
        return &c->base;
}

void command_cancel(struct command *c)
{
        if (c)
                c->cancel(c);
}

void command_end(struct command *c, int64_t grace_ms)
{
        if (c && c->end)
                c->end(c, grace_ms);
}

void command_complaints(const struct command *c, struct buf *out)
{
        if (c->complaints)
                c->complaints(c, out);
}

/* Waits for the end of the process; after timeout_ms kills its session. */
static void wait_for(pid_t pid, int timeout_ms)
{
        struct pollfd ended = {.fd = pidfd_open(pid, 0), .events = POLLIN};

        if (ended.fd >= 0 && poll(&ended, 1, timeout_ms) != 1)
                kill(-pid, SIGKILL);
        if (ended.fd >= 0)
                close(ended.fd);
        waitpid(pid, NULL, 0);
}

void command_now(const struct args *argv, char *const *envp, struct str input, int timeout_ms)
{
        int fd = command_input(input);
        posix_spawn_file_actions_t files;
        posix_spawnattr_t group;
        pid_t pid;

        posix_spawn_file_actions_init(&files);
        posix_spawnattr_init(&group);
        posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
        if (fd >= 0)
                posix_spawn_file_actions_adddup2(&files, fd, STDIN_FILENO);
        posix_spawn_file_actions_addclosefrom_np(&files, 3);
        if (posix_spawnp(&pid, argv->v[0], &files, &group, argv->v, envp) == 0)
                wait_for(pid, timeout_ms);
        posix_spawnattr_destroy(&group);
        posix_spawn_file_actions_destroy(&files);
        if (fd >= 0)
                close(fd);
}

void command_quote(struct buf *out, struct str s)
{
        buf_char(out, '\'');
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] == '\'')
                        buf_addz(out, "'\\''");
                else
                        buf_char(out, s.p[i]);
        buf_char(out, '\'');
}
