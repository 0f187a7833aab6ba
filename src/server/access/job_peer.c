/* Everything is read from /proc while the process lives. Its pidfd is checked afterwards, because the
 * kernel may reuse a process id. The control groups of jobs are .../drover-INSTANCE/sN
 * (base/system/cgroup.h), with 13 characters of the agent's instance. */
#include "server/access/job_peer.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/system/ancestry.h"
#include "base/system/fs.h"

#define GROUP         "/drover-"
#define GROUP_SIZE    (sizeof(GROUP) - 1 + 13)
#define SHEPHERD      "drover-shepherd" /* the kernel keeps 15 bytes of a process's name */
#define SHEPHERDS_MAX 8
#define MARKER        "_DROVER_ATTEMPT="
#define PROC_FILE_MAX (256u << 10)

/* *ret is emptied first. Returns false if the file cannot be read. */
static bool read_proc(pid_t pid, const char *name, struct buf *ret)
{
        char path[64];

        buf_reset(ret);
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
        return fs_read(AT_FDCWD, path, PROC_FILE_MAX, ret, NULL) == 0;
}

static bool in_group(const char *theirs, const char *ours)
{
        for (const char *p = theirs; (p = strstr(p, GROUP)); p++) {
                const char *rest = p + GROUP_SIZE;
                size_t n = strspn(p + sizeof(GROUP) - 1, "0123456789abcdef-");

                if (n == 13 && rest[0] == '/' && rest[1] == 's' && isdigit((unsigned char)rest[2]) &&
                    !memmem(ours, strlen(ours), p, GROUP_SIZE))
                        return true;
        }
        return false;
}

static bool in_jobs_group(pid_t pid)
{
        BUF_CLEANUP struct buf theirs = {0}, ours = {0};

        return read_proc(pid, "cgroup", &theirs) && read_proc(getpid(), "cgroup", &ours) &&
               in_group(buf_z(&theirs), buf_z(&ours));
}

static bool is_pid(void *arg, pid_t pid, const char *comm)
{
        (void)comm;
        return pid == *(pid_t *)arg;
}

static bool has_marker(pid_t pid)
{
        BUF_CLEANUP struct buf text = {0};

        if (!read_proc(pid, "environ", &text))
                return false;
        return str_starts(buf_view(&text), STR(MARKER)) ||
               memmem(text.p, text.n, "\0" MARKER, sizeof(MARKER)) != NULL;
}

/* Returns the line of /proc/PID/status that begins with `name`, which includes the newline before it;
 * empty: there is none. */
static struct str line_of(const struct buf *status, const char *name)
{
        const char *p = status->n ? memmem(status->p, status->n, name, strlen(name)) : NULL;
        const char *end = p ? memchr(p + 1, '\n', (size_t)(status->p + status->n - p - 1)) : NULL;

        return end ? str_make(p, (size_t)(end - p)) : STR_NONE;
}

/* Returns whether the process has a restriction that its shepherd does not have. Only jobs get such
 * restrictions. */
static bool is_contained(pid_t pid, pid_t shepherd)
{
        static const char *const lines[] = {"\nNoNewPrivs:", "\nSeccomp:", "\nSeccomp_filters:", "\nCapBnd:"};
        BUF_CLEANUP struct buf theirs = {0}, above = {0};

        if (!read_proc(pid, "status", &theirs) || !read_proc(shepherd, "status", &above))
                return false;
        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
                if (!str_eq(line_of(&theirs, lines[i]), line_of(&above, lines[i])))
                        return true;
        return false;
}

/* The shepherds above a process, except those above this server. */
struct above {
        pid_t pid; /* of the process that is checked */
        unsigned count;
        bool contained;
};

/* Any process may use the shepherd's name, so each one above the process is checked. A process below many
 * of them belongs to a job. */
static bool contains(void *arg, pid_t pid, const char *comm)
{
        struct above *a = arg;

        if (strcmp(comm, SHEPHERD) != 0 || ancestry_find(getpid(), is_pid, &pid) == 1)
                return false;
        a->contained = ++a->count > SHEPHERDS_MAX || is_contained(a->pid, pid);
        return a->contained;
}

/* A process that is nested too deep, or whose parents keep changing, is taken for a job's. */
static bool is_below_shepherd(pid_t pid)
{
        struct above a = {.pid = pid};
        int r = ancestry_find(pid, contains, &a);

        return r == -ELOOP || r == -EAGAIN || a.contained || (a.count && has_marker(pid));
}

static bool alive(int pidfd)
{
        struct pollfd p = {.fd = pidfd, .events = POLLIN};

        return pidfd >= 0 && poll(&p, 1, 0) == 0;
}

bool job_peer_is(pid_t pid, int pidfd)
{
        bool is;

        if (!alive(pidfd))
                return true;
        is = in_jobs_group(pid) || is_below_shepherd(pid);
        return is || !alive(pidfd);
}
