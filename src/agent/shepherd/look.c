/* Reads the environment that a process was started with. The kernel does so under the lock of the process's
 * address space, and any user can have that lock held for ever, by a file system of its own that does not
 * answer (fuse(4)). The reader then waits until SIGKILL. Therefore a child of the shepherd reads, one for
 * each round of looks, and is killed if it does not answer in time. The process that it waited for is
 * skipped for a while, and so is the rest of that round, so that a round takes no longer than one such wait.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

#define ANSWER_MS 500   /* time for the child to read one environment */
#define PASS_MS   60000 /* pause before a process that blocked a look is examined again */
#define PASS_MAX  256   /* the oldest are forgotten */

struct question {
        pid_t pid;
        bool whole;
        size_t length;
        char marker[LOOK_MARKER_MAX];
};

static struct {
        pid_t child; /* 0: none */
        int to;      /* socket to the child */
        bool late;   /* the child did not answer: the round is over */
} look;

static struct {
        pid_t pid;
        int64_t until;
} passed[PASS_MAX];

static bool has_marker(const struct question *q)
{
        char path[64], room[65536];

        snprintf(path, sizeof(path), "/proc/%d/environ", (int)q->pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        bool found = false, line_start = true;
        ssize_t n;
        size_t kept = 0;
        while (!found && (n = read(fd, room + kept, sizeof(room) - kept)) > 0) {
                size_t size = kept + (size_t)n;
                char *p = room, *end = room + size;

                while (!found && p < end) {
                        char *z = memchr(p, 0, (size_t)(end - p));

                        if (!z && p > room)
                                break;
                        size_t len = z ? (size_t)(z - p) : (size_t)(end - p);
                        found = line_start && len >= q->length && !memcmp(p, q->marker, q->length) &&
                                (!q->whole || len == q->length);
                        line_start = z != NULL;
                        p = z ? z + 1 : end;
                }
                kept = (size_t)(end - p);
                memmove(room, p, kept);
        }
        close(fd);
        return found;
}

/* The child's main function. It closes all of the shepherd's descriptors, so that a connection can end. */
static void __attribute__((noreturn)) answer(int from, pid_t parent)
{
        struct question q;

        if (dup2(from, 0) < 0)
                _exit(1);
        close_range(1, ~0U, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        while (getppid() == parent && recv(0, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
                char found = has_marker(&q);

                if (send(0, &found, 1, MSG_NOSIGNAL) != 1)
                        break;
        }
        _exit(0);
}

static bool start_looking(void)
{
        const struct timeval limit = {.tv_usec = ANSWER_MS * 1000};
        int ends[2];
        pid_t parent = getpid();

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return false;
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        pid_t pid = fork();
        if (pid == 0)
                answer(ends[1], parent);
        close(ends[1]);
        if (pid < 0) {
                close(ends[0]);
                return false;
        }
        look.child = pid;
        look.to = ends[0];
        return true;
}

/* Ends the child. If it was late it may be unkillable for now: it is reaped like any other child
 * (tree_reap). */
static void stop_looking(void)
{
        if (!look.child)
                return;
        close(look.to);
        kill(look.child, SIGKILL);
        if (!look.late)
                waitpid(look.child, NULL, 0);
        look.child = 0;
}

static bool is_passed(pid_t pid, int64_t now)
{
        for (unsigned i = 0; i < PASS_MAX; i++)
                if (passed[i].pid == pid && now < passed[i].until)
                        return true;
        return false;
}

static void pass(pid_t pid, int64_t now)
{
        unsigned oldest = 0;

        for (unsigned i = 1; i < PASS_MAX; i++)
                if (passed[i].until < passed[oldest].until)
                        oldest = i;
        passed[oldest].pid = pid;
        passed[oldest].until = now + PASS_MS;
        complain("msg=\"the environment of a process cannot be read, and nobody waits for that\" pid=%d",
                 (int)pid);
}

void look_begin(void)
{
        look.late = false;
}

bool look_for(pid_t pid, const char *marker, size_t length, bool whole)
{
        struct question q = {.pid = pid, .whole = whole, .length = length};
        char found = 0;
        int64_t now = boot_ms();

        if (look.late || length > sizeof(q.marker) || is_passed(pid, now) ||
            (!look.child && !start_looking()))
                return false;
        memcpy(q.marker, marker, length);
        if (send(look.to, &q, sizeof(q), MSG_NOSIGNAL) == (ssize_t)sizeof(q) &&
            recv(look.to, &found, 1, 0) == 1)
                return found;
        look.late = true;
        stop_looking();
        pass(pid, now);
        return false;
}

bool look_end(void)
{
        stop_looking();
        return !look.late;
}

bool look_is(pid_t pid)
{
        return look.child && pid == look.child;
}
