#include "cli/command/instance/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"

void child_deinit(struct child *c)
{
        buf_deinit(&c->path);
        args_deinit(&c->argv);
}

static _Noreturn void child_exec(const struct child *c, const char *path, pid_t parent)
{
        sigset_t none;
        int null = open("/dev/null", O_RDWR);

        /* The daemon's log goes to our stderr; other output is not part of `drover up`. */
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        close(null);
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == parent) /* otherwise the parent ended before prctl */
                execv(path, c->argv.v);
        _exit(127);
}

int child_start(struct child *c, struct err *err)
{
        const char *path = buf_z(&c->path);
        pid_t parent = getpid(), pid = fork();

        if (pid < 0)
                return err_set(err, -errno, "%s could not be started: %s", c->name, strerror(errno));
        if (pid == 0)
                child_exec(c, path, parent);
        setpgid(pid, pid); /* parent and child both set it, whichever runs first */
        c->pid = pid;
        c->started_ms = clock_boot_ms();
        c->start_at_ms = 0;
        return 0;
}

void child_ended(struct child *c, int status)
{
        int64_t now_ms = clock_boot_ms();

        c->pid = 0;
        c->status = status;
        if (now_ms - c->started_ms >= CHILD_GOOD_MS)
                c->pause_ms = 0;
        c->start_at_ms = now_ms + c->pause_ms;
        c->pause_ms = c->pause_ms == 0 ? CHILD_PAUSE_FIRST_MS : c->pause_ms * 2;
        if (c->pause_ms > CHILD_PAUSE_MAX_MS)
                c->pause_ms = CHILD_PAUSE_MAX_MS;
}

void child_describe(const struct child *c, struct buf *out)
{
        if (WIFSIGNALED(c->status))
                buf_printf(out, "%s was killed by signal %d", c->name, WTERMSIG(c->status));
        else if (WEXITSTATUS(c->status) == 127)
                buf_printf(out, "%s could not be started", c->name);
        else
                buf_printf(out, "%s ended with status %d", c->name, WEXITSTATUS(c->status));
}
