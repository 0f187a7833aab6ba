/* fork and exec; the child tells why exec failed over a pipe that a successful exec closes. Its end is seen
 * through a pidfd (Linux 5.3), so that no signal handler is shared with anybody. */
#include "ev/children.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "ev/private.h"

struct child {
        struct loop *loop;
        struct child *next, **link;
        pid_t pid;
        int fd;
        struct watch *watch;
        void (*exited)(void *arg, struct child *c, int status); /* NULL: forgotten */
        void *arg;
};

static void child_free(struct child *c)
{
        watch_free(c->watch);
        close(c->fd);
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        free(c);
}

static void child_ended(void *arg, int what)
{
        struct child *c = arg;
        pid_t pid;
        int status = 0;

        (void)what;
        do
                pid = waitpid(c->pid, &status, WNOHANG);
        while (pid < 0 && errno == EINTR);
        if (pid == 0)
                return;
        c->pid = 0; /* no signal may reach the next process of that number */
        watch_set(c->watch, 0);
        if (c->exited)
                c->exited(c->arg, c, pid < 0 ? 0 : status);
        child_free(c);
}

/* Runs in the child after fork in a threaded program: async-signal-safe calls only. */
__attribute__((noreturn)) static void child_exec(const struct child_spec *spec, char *const *envp, int why_fd,
                                                 pid_t parent)
{
        struct sigaction act = {.sa_handler = SIG_DFL};
        int fds[3] = {spec->stdin_fd, spec->stdout_fd, spec->stderr_fd};
        sigset_t none;
        int error;

        for (int signo = 1; signo < NSIG; signo++)
                sigaction(signo, &act, NULL);
        if (spec->new_session)
                setsid();
        if (spec->die_with_parent) {
                prctl(PR_SET_PDEATHSIG, SIGTERM);
                if (getppid() != parent)
                        _exit(127);
        }
        if (fds[0] < 0)
                fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        for (int i = 0; i < 3; i++) /* away from 0 to 2, which are overwritten next */
                if (fds[i] >= 0 && (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3)) < 0)
                        goto failed;
        for (int i = 0; i < 3; i++)
                if (fds[i] >= 0 && dup2(fds[i], i) < 0)
                        goto failed;
        close_range(3, ~0u, CLOSE_RANGE_CLOEXEC); /* including those that libraries such as libcurl opened */
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execvpe(spec->argv[0], spec->argv, envp);
failed:
        error = errno;
        if (write(why_fd, &error, sizeof(error)) != sizeof(error))
                _exit(126);
        _exit(127);
}

static pid_t child_fork(const struct child_spec *spec, int why_fd)
{
        char *const *envp = spec->envp ? spec->envp : environ;
        pid_t parent = getpid(), pid;
        sigset_t all, before;

        sigfillset(&all); /* no handler of ours may run in the child */
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pid = fork();
        if (pid == 0)
                child_exec(spec, envp, why_fd, parent);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return pid;
}

static int child_read_error(int fd)
{
        int error = 0;
        ssize_t n;

        do
                n = read(fd, &error, sizeof(error));
        while (n < 0 && errno == EINTR);
        return n == sizeof(error) ? error : 0;
}

int child_spawn(struct loop *l, const struct child_spec *spec,
                void (*exited)(void *arg, struct child *c, int status), void *arg, struct child **ret,
                struct err *err)
{
        struct child **list = loop_children(l);
        struct child *c;
        int why[2], error, fd;
        pid_t pid;

        /* above 2, so that it is never in the way of the child's standard descriptors */
        if (pipe2(why, O_CLOEXEC) < 0)
                return err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
        if (why[1] < 3 && (fd = fcntl(why[1], F_DUPFD_CLOEXEC, 3)) >= 0) {
                close(why[1]);
                why[1] = fd;
        }
        pid = child_fork(spec, why[1]);
        error = errno;
        close(why[1]);
        if (pid < 0) {
                close(why[0]);
                return err_set(err, -error, "cannot start %s: fork: %s", spec->argv[0], strerror(error));
        }
        error = child_read_error(why[0]);
        close(why[0]);
        fd = error ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd < 0) {
                if (!error) {
                        error = errno;
                        kill(pid, SIGKILL);
                }
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        continue;
                return err_set(err, -error, "cannot start %s: %s%s", spec->argv[0], strerror(error),
                               error == ENOENT && !strchr(spec->argv[0], '/') ? " in PATH" : "");
        }
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        c = mem_new(struct child);
        *c = (struct child){.loop = l, .pid = pid, .fd = fd, .exited = exited, .arg = arg};
        c->next = *list;
        c->link = list;
        if (c->next)
                c->next->link = &c->next;
        *list = c;
        c->watch = watch_new(l, fd, WATCH_READ, child_ended, c);
        *ret = c;
        return 0;
}

pid_t child_pid(const struct child *c)
{
        return c->pid;
}

void child_kill(struct child *c, int signo)
{
        if (c->pid > 0)
                kill(c->pid, signo);
}

void child_end(struct child *c)
{
        pid_t pid = -1;

        child_kill(c, SIGKILL);
        while (c->pid > 0 && (pid = waitpid(c->pid, NULL, 0)) < 0 && errno == EINTR)
                ;
        child_free(c);
}

void child_forget(struct child *c)
{
        c->exited = NULL;
}

/* Called when the loop ends: children that still run go on, and are not reaped. */
void children_release(struct loop *l)
{
        struct child **list = loop_children(l);

        while (*list) {
                assert(!(*list)->exited);
                child_free(*list);
        }
}
