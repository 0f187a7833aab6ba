/* drover-shepherd --dir STATE --instance UUID [--users FILE --min-uid N --agent-uid N] [--ready-fd N]
 *
 * The agent starts the shepherd in a session of its own; it survives the agent's death. The lock file is
 * held all the time: a second shepherd on the same folder ends at once with exit code 3. SIGTERM kills all
 * children and ends the shepherd. If the agent is gone and nothing runs, it ends by itself, after the lease
 * of children whose end is still to be reported.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/shepherd/containment.h"
#include "agent/shepherd/shepherd.h"

#define WAIT_MAX_MS 1000

/* Listens on a socket in the folder. Its path may be too long for a socket's address, so it is named through
 * the folder's descriptor. */
static int listen_in(int dir, uid_t uid, uid_t agent_uid)
{
        struct sockaddr_un a = {.sun_family = AF_UNIX};

        snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" SHEPHERD_SOCKET, dir);
        unlinkat(dir, SHEPHERD_SOCKET, 0);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        mode_t old = umask(0177);
        int r = bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 8) < 0 ? -errno : 0;
        umask(old);
        /* the folder is root's then (sandbox_open), and nobody else can have put something in its place */
        if (r == 0 && agent_uid != uid &&
            fchownat(dir, SHEPHERD_SOCKET, agent_uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
                r = -errno;
        if (r < 0)
                close(fd);
        return r < 0 ? r : fd;
}

static int signals_open(void)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        /* resets signals: a shell's background job has SIGINT and SIGQUIT ignored, which all jobs of an
         * agent started there would inherit */
        for (int i = 1; i <= SIGRTMAX; i++)
                signal(i, SIG_DFL);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void on_signal(struct shepherd *s)
{
        struct signalfd_siginfo info;

        while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
                if (info.ssi_signo == SIGTERM)
                        s->quit = true;
}

/* Returns whether the shepherd may exit: no agent is connected and nothing runs. Unreported exits wait for
 * the end of the lease. */
static bool finished(struct shepherd *s, int64_t now, int64_t *timeout)
{
        if (s->agent >= 0 || s->running_count > 0) {
                s->idle_since = 0;
                return false;
        }
        if (!s->idle_since)
                s->idle_since = now;
        int64_t until = s->idle_since + LINGER_MS;
        if (s->child_count > 0)
                until = s->lease_until ? s->lease_until + 60000 : INT64_MAX;
        if (now >= until)
                return true;
        if (until != INT64_MAX && (*timeout < 0 || *timeout > until - now))
                *timeout = until - now;
        return false;
}

static void run_shepherd(struct shepherd *s)
{
        while (!s->quit) {
                bool more = tree_reap(s);

                serve_renewals(s);
                int64_t now = boot_ms(), timeout = tree_timers(s, now);
                if (more)
                        timeout = 0;
                serve_flush(s);
                if (finished(s, now, &timeout))
                        return;
                int64_t tell_at = serve_time(s);
                if (tell_at != INT64_MAX && !serve_waits(s) && (timeout < 0 || timeout > tell_at - now))
                        timeout = tell_at > now ? tell_at - now : 0;
                struct pollfd fds[3] = {
                        {.fd = s->signals, .events = POLLIN},
                        {.fd = s->listener, .events = POLLIN},
                        {.fd = s->agent, .events = (short)(POLLIN | (serve_waits(s) ? POLLOUT : 0))},
                };
                /* poll does not count time in which the machine is suspended, but a lease does */
                if (poll(fds, 3, timeout > WAIT_MAX_MS ? WAIT_MAX_MS : (int)timeout) < 0 && errno != EINTR)
                        break;
                if (fds[0].revents)
                        on_signal(s);
                if (fds[2].revents & (POLLIN | POLLHUP | POLLERR))
                        serve_agent(s);
                if (fds[1].revents)
                        serve_accept(s);
        }
        /* told to end: ends all children first */
        int64_t until = boot_ms() + 10000;
        for (struct child *c = s->running; c; c = c->run_next)
                tree_kill(s, c, SHEPHERD_KILLED, 0);
        while (s->running && boot_ms() < until) {
                poll(&(struct pollfd){.fd = s->signals, .events = POLLIN}, 1, 2);
                on_signal(s);
                tree_reap(s);
                tree_timers(s, boot_ms());
        }
        serve_flush(s);
}

static int usage(int fd)
{
        static const char text[] =
                "usage: drover-shepherd --dir STATE --instance UUID [--users FILE] [--min-uid N] "
                "[--agent-uid N] [--cgroup DIR] [--start-limit SECONDS] [--hide FOLDER]...\n"
                "       drover-shepherd --help | --version\n"
                "Started by drover-agent; see drover-shepherd(8).\n";

        (void)!write(fd, text, sizeof(text) - 1);
        return fd == 1 ? 0 : 2;
}

struct options {
        const char *dir, *agent_uid;
        const char *hidden[CONTAINMENT_HIDDEN_MAX]; /* beside dir */
        size_t hidden_count;
        const char *cgroups[2];
        int ready; /* descriptor; -1: none */
};

/* Reads the options. Returns -1 to continue, or an exit code. */
static int read_options(int argc, char **argv, struct shepherd *s, struct options *o)
{
        for (int i = 1; i < argc; i++) {
                const char *value = i + 1 < argc ? argv[i + 1] : NULL;

                if (!strcmp(argv[i], "--version")) {
                        static const char text[] = "drover-shepherd " DROVER_VERSION "\n";

                        (void)!write(1, text, sizeof(text) - 1);
                        return 0;
                }
                if (!strcmp(argv[i], "--help"))
                        return usage(1);
                if (!value || strncmp(argv[i], "--", 2) != 0)
                        return usage(2);
                if (!strcmp(argv[i], "--dir"))
                        o->dir = value;
                else if (!strcmp(argv[i], "--instance"))
                        s->instance = value;
                else if (!strcmp(argv[i], "--users"))
                        s->users_path = value;
                else if (!strcmp(argv[i], "--min-uid"))
                        s->min_uid = (uid_t)strtoul(value, NULL, 10);
                else if (!strcmp(argv[i], "--cgroup"))
                        o->cgroups[o->cgroups[0] != NULL] = value;
                else if (!strcmp(argv[i], "--start-limit"))
                        s->start_max_ms = strtol(value, NULL, 10) * 1000;
                else if (!strcmp(argv[i], "--agent-uid"))
                        o->agent_uid = value;
                else if (!strcmp(argv[i], "--hide") && o->hidden_count + 1 < CONTAINMENT_HIDDEN_MAX)
                        o->hidden[o->hidden_count++] = value;
                else if (!strcmp(argv[i], "--ready-fd"))
                        o->ready = (int)strtol(value, NULL, 10);
                else
                        return usage(2);
                i++;
        }
        return o->dir && s->instance && *s->instance ? -1 : usage(2);
}

/* Reports the error in the log and to the parent. */
static int cannot_start(const struct options *o, const char *what, int error)
{
        complain("msg=\"%s\" dir=%s error=\"%s\"", what, o->dir, strerror(error));
        if (o->ready >= 0)
                dprintf(o->ready, "%s %s: %s", what, o->dir, strerror(error));
        return 1;
}

/* The state folder is hidden, and the sandboxes in it are not. */
static void contain(struct shepherd *s, struct options *o)
{
        char jobs[4096];

        if (mkdirat(s->dir, "jobs", 0700) < 0 && errno != EEXIST)
                complain("msg=\"cannot make the folder of sandboxes\" error=\"%s\"", strerror(errno));
        snprintf(jobs, sizeof(jobs), "%s/jobs", o->dir);
        o->hidden[o->hidden_count++] = o->dir;
        s->containment = containment_new(o->hidden, o->hidden_count, jobs, &s->no_view);
        if (s->no_view)
                complain("msg=\"jobs can read Drover's own folders: this machine gives them no view of their "
                         "own\" error=\"%s\"",
                         strerror(s->no_view));
}

int main(int argc, char **argv)
{
        static struct shepherd s = {.agent = -1, .passed = -1, .min_uid = 1000, .start_max_ms = START_MAX_MS};
        struct options o = {.ready = -1};

        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* jobs of the same user may not look inside */
        int r = read_options(argc, argv, &s, &o);
        if (r >= 0)
                return r;
        s.uid = s.agent_uid = getuid();
        s.gid = getgid();
        if (o.agent_uid && s.users_path && s.uid == 0)
                s.agent_uid = (uid_t)strtoul(o.agent_uid, NULL, 10);
        s.dir = open(o.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s.dir >= 0 && (r = sandbox_open(&s)) < 0) /* must precede anything made in it */
                return cannot_start(&o, "cannot trust the state folder", -r);
        int lock = s.dir < 0
                           ? -1
                           : openat(s.dir, "shepherd.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (lock < 0)
                return cannot_start(&o, "cannot open the state folder", errno);
        if (flock(lock, LOCK_EX | LOCK_NB) < 0)
                return 3;
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        s.signals = signals_open();
        if (s.signals < 0)
                return cannot_start(&o, "cannot watch for signals in", errno);
        s.dirty_last = &s.dirty_first;
        s.message = must(malloc(SHEPHERD_BATCH_MAX));
        groups_open(&s, o.cgroups, 2);
        r = table_open(&s);
        if (r == 0)
                r = begun_open(&s);
        s.listener = r < 0 ? r : listen_in(s.dir, s.uid, s.agent_uid);
        if (s.listener < 0)
                return cannot_start(&o, "cannot make what it needs in", -s.listener);
        contain(&s, &o);
        if (o.ready >= 0) {
                (void)!write(o.ready, SHEPHERD_IS_READY, strlen(SHEPHERD_IS_READY));
                close(o.ready);
        }
        run_shepherd(&s);
        groups_remove(&s);
        unlinkat(s.dir, SHEPHERD_SOCKET, 0);
        unlinkat(s.dir, SHEPHERD_BEGUN, 0);
        return 0;
}
