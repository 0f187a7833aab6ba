/* A number may have become another process's between two looks. A parent was the process's own at a time when
 * both had their numbers: the child is looked at again, and still has that parent. */
#include "base/system/ancestry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES_MAX 8
#define DEPTH_MAX 256

struct process {
        char comm[64];
        pid_t parent;
        unsigned long long start;
};

/* /proc/PID/stat: "pid (comm) state ppid ... starttime(22) ...", and comm may have anything in it (proc(5)).
 */
static bool read_process(pid_t pid, struct process *ret)
{
        char path[64], text[1024];

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
                close(fd);
        if (n <= 0)
                return false;
        text[n] = 0;
        char *open = strchr(text, '('), *close = strrchr(text, ')');
        if (!open || !close || close < open || strlen(close) < 5)
                return false;
        *close = 0;
        snprintf(ret->comm, sizeof(ret->comm), "%s", open + 1);
        char *p = close + 4; /* after ") S " */
        ret->parent = (pid_t)strtol(p, NULL, 10);
        for (int field = 4; p && field < 22; field++)
                p = strchr(p + 1, ' ');
        ret->start = p ? strtoull(p, NULL, 10) : 0;
        return true;
}

static bool process_same(const struct process *a, const struct process *b)
{
        return a->parent == b->parent && a->start == b->start;
}

/* 1, 0, -ESRCH, -ELOOP as above; -EAGAIN: a process on the way has ended. */
static int try_find(pid_t pid, bool (*is)(void *arg, pid_t pid, const char *comm), void *arg)
{
        struct process child, parent, again;

        if (!read_process(pid, &child))
                return -ESRCH;
        for (int depth = 0; child.parent > 0; depth++) {
                if (depth == DEPTH_MAX)
                        return -ELOOP;
                bool there = read_process(child.parent, &parent);
                if (!read_process(pid, &again) || !process_same(&child, &again))
                        return -EAGAIN;
                if (!there) /* hidden from us (hidepid): nothing above it can be seen */
                        return 0;
                pid = child.parent;
                child = parent;
                if (is(arg, pid, child.comm))
                        return 1;
        }
        return 0;
}

int ancestry_find(pid_t pid, bool (*is)(void *arg, pid_t pid, const char *comm), void *arg)
{
        int r = -EAGAIN;

        for (int i = 0; i < TRIES_MAX && r == -EAGAIN; i++)
                r = try_find(pid, is, arg);
        return r;
}
