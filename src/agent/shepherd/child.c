/* Takes a child from the fork to its program.
 *
 * A child that must become another user is forked: a process of that user must never share memory with the
 * shepherd. Any other child is made by a launcher (launcher.c) and shares the memory until it executes its
 * program: it writes to its own entry and stack only.
 *
 * Order in the child: session, control groups, limits, containment, user, death signal, folder, streams, the
 * rest of containment, program. The death signal is set after the change of user, which clears it
 * (prctl(2)), as does entering a user namespace; then the child checks that the shepherd still lives.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

static void at(const struct plan *p, enum shepherd_where where)
{
        p->entry->where = where;
}

static void __attribute__((noreturn)) fail(const struct plan *p, enum shepherd_where where, int error)
{
        p->entry->where = where;
        p->entry->error = (uint32_t)error;
        _exit(127);
}

static int open_stream(int sandbox, const char *path, int flags)
{
        if (!*path)
                return open("/dev/null", flags & (O_ACCMODE | O_CLOEXEC));
        if (*path == '/')
                return open(path, flags, 0666);
        struct open_how how = {.flags = (uint64_t)flags,
                               .mode = flags & O_CREAT ? 0644 : 0,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
        return (int)syscall(SYS_openat2, sandbox, path, &how, sizeof(how));
}

static void take_stream(const struct plan *p, int sandbox, const char *path, int flags, int as,
                        enum shepherd_where where)
{
        at(p, where);
        /* avoids waiting for the other end of a pipe */
        int fd = open_stream(sandbox, path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;
        if (fd < 0)
                fail(p, where, errno);
        if (fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)))
                fail(p, where, S_ISDIR(st.st_mode) ? EISDIR : EINVAL);
        if (S_ISCHR(st.st_mode))
                fcntl(fd, F_SETFL, flags & O_APPEND);
        if (dup2(fd, as) < 0)
                fail(p, where, errno);
}

static void take_outputs(const struct plan *p, int sandbox)
{
        const struct shepherd_start *r = p->r;
        int made = O_WRONLY | O_CREAT;

        take_stream(p, sandbox, p->out, made | (r->flags & SHEPHERD_STDOUT_APPEND ? O_APPEND : O_TRUNC), 1,
                    SHEPHERD_AT_STDOUT);
        if (!(r->flags & SHEPHERD_STDERR_IS_STDOUT))
                take_stream(p, sandbox, p->err,
                            made | (r->flags & SHEPHERD_STDERR_APPEND ? O_APPEND : O_TRUNC), 2,
                            SHEPHERD_AT_STDERR);
        else if (dup2(1, 2) < 0)
                fail(p, SHEPHERD_AT_STDERR, errno);
}

/* The child leads a session of its own by now; a terminal that another session has is refused. */
static void take_terminal(const struct plan *p)
{
        at(p, SHEPHERD_AT_STDIN);
        if (ioctl(0, TIOCSCTTY, 0) < 0 || dup2(0, 1) < 0 || dup2(0, 2) < 0)
                fail(p, SHEPHERD_AT_STDIN, errno);
}

static void become_job(const struct plan *p)
{
        const struct user *u = p->user;

        if (syscall(SYS_setgroups, (size_t)u->group_count, u->groups) < 0 ||
            syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ||
            syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0)
                fail(p, SHEPHERD_AT_USER, errno);
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* fs.suid_dumpable may have set it */
}

static void __attribute__((noreturn)) in_child(const struct plan *p)
{
        const struct shepherd_start *r = p->r;

        setsid();
        at(p, SHEPHERD_AT_CGROUP);
        for (unsigned i = 0; i < p->group_count; i++)
                if (write(p->groups[i], "0", 1) != 1)
                        fail(p, SHEPHERD_AT_CGROUP, errno);
        at(p, SHEPHERD_AT_RLIMIT);
        for (unsigned i = 0; i < r->rlimit_count; i++) {
                struct rlimit l = {r->rlimits[i].soft, r->rlimits[i].hard}, now;

                /* never above our own limit, even if that is permitted */
                if (syscall(SYS_prlimit64, 0, r->rlimits[i].resource, NULL, &now) == 0 &&
                    now.rlim_max < l.rlim_max) {
                        l.rlim_max = now.rlim_max;
                        l.rlim_cur = l.rlim_cur < l.rlim_max ? l.rlim_cur : l.rlim_max;
                }
                if (syscall(SYS_prlimit64, 0, r->rlimits[i].resource, &l, NULL) < 0)
                        fail(p, SHEPHERD_AT_RLIMIT, errno);
        }
        at(p, SHEPHERD_AT_CONTAINMENT);
        int error = containment_enter(&p->contained);
        if (error)
                fail(p, SHEPHERD_AT_CONTAINMENT, error);
        at(p, SHEPHERD_AT_USER);
        if (p->user)
                become_job(p);
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != p->parent)
                _exit(127);
        int sandbox = -1;
        at(p, SHEPHERD_AT_SANDBOX);
        if (*p->sandbox) {
                sandbox = open(p->sandbox, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (sandbox < 0)
                        fail(p, SHEPHERD_AT_SANDBOX, errno);
        }
        at(p, SHEPHERD_AT_CWD);
        if (*p->cwd ? chdir(p->cwd) < 0 : sandbox >= 0 && fchdir(sandbox) < 0)
                fail(p, SHEPHERD_AT_CWD, errno);
        if (!(r->flags & SHEPHERD_STDIN_FD))
                take_stream(p, sandbox, p->in, O_RDONLY, 0, SHEPHERD_AT_STDIN);
        else if (dup2(p->passed, 0) < 0)
                fail(p, SHEPHERD_AT_STDIN, errno);
        if (r->flags & SHEPHERD_TERMINAL)
                take_terminal(p);
        else
                take_outputs(p, sandbox);
        struct {
                void *handler;
                unsigned long flags;
                void *restorer;
                uint64_t mask;
        } none = {0};
        syscall(SYS_rt_sigaction, SIGPIPE, &none, NULL, sizeof(none.mask));
        syscall(SYS_rt_sigaction, SIGHUP, &none, NULL, sizeof(none.mask));
        syscall(SYS_rt_sigaction, SIGINT, &none, NULL, sizeof(none.mask));
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none.mask, NULL, sizeof(none.mask));
        syscall(SYS_umask, 022);
        at(p, SHEPHERD_AT_CONTAINMENT);
        if ((error = containment_seal(&p->contained)))
                fail(p, SHEPHERD_AT_CONTAINMENT, error);
        at(p, SHEPHERD_AT_EXEC);
        execve(p->path, p->argv, p->envp);
        fail(p, SHEPHERD_AT_EXEC, errno);
}

pid_t child_start(const struct plan *p)
{
        pid_t pid = p->user ? 0 : launcher_start(p, in_child);

        if (pid)
                return pid;
        pid = fork();
        if (pid == 0)
                in_child(p);
        return pid;
}
