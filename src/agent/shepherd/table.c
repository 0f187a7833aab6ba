/* The pids of the children, in a file that all children map: an entry costs no system call. A pid alone may
 * be reused, so each is written with the start time of its process, which /proc has in clock ticks since
 * boot. The file is never flushed: it need not survive a crash of the machine. If it is damaged, processes
 * with the marker in their environment are still found. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

#define TABLE_FILE  "shepherd.table"
#define TABLE_MAGIC 0x31656c6261745344u /* "DStable1" */

static void read_boot_id(char *room, size_t size)
{
        memset(room, 0, size);
        int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
                (void)!read(fd, room, size - 1);
                close(fd);
        }
}

/* Returns the process's start in ms since boot; -1: no such process. Field 22 of /proc/PID/stat (proc(5)).
 */
static int64_t start_of(pid_t pid)
{
        char path[64], text[1024];

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
                close(fd);
        if (n <= 0)
                return -1;
        text[n] = 0;
        char *p = strrchr(text, ')');
        for (int field = 2; p && field < 22; field++)
                p = strchr(p + 1, ' ');
        return p ? strtoll(p, NULL, 10) * 1000 / sysconf(_SC_CLK_TCK) : -1;
}

/* Returns whether the entry is damaged, by a lost write or foreign bytes: it names no process then. */
static bool is_damaged(const struct table_entry *e, int64_t now)
{
        return e->pid < 0 || e->zero || e->start_boot_ms < 0 || e->start_boot_ms > now;
}

/* Kills the processes in a table of this boot. Returns how many entries are damaged. */
static unsigned kill_recorded(struct shepherd *s)
{
        int64_t tick_ms = 1000 / sysconf(_SC_CLK_TCK), now = boot_ms();
        unsigned damaged = 0;

        for (unsigned i = 0; i < TABLE_MAX; i++) {
                const struct table_entry *e = &s->table->entries[i];

                if (is_damaged(e, now)) {
                        damaged++;
                        continue;
                }
                if (e->pid <= 1)
                        continue;
                /* opened before the start is read, so that it is this process or none */
                int fd = pidfd_open(e->pid, 0);
                int64_t start = fd < 0 ? -1 : start_of(e->pid);
                /* the entry's time was read just before the start */
                if (start >= 0 && start >= e->start_boot_ms - 2 * tick_ms &&
                    start <= e->start_boot_ms + 1000) {
                        complain("msg=\"ending a process of the last shepherd\" pid=%d", (int)e->pid);
                        kill(-e->pid, SIGKILL); /* the group keeps its number while it exists */
                        pidfd_send_signal(fd, SIGKILL, NULL, 0);
                }
                if (fd >= 0)
                        close(fd);
        }
        return damaged;
}

/* The file with room on the disk for all of it: a write to a mapped page that has none is SIGBUS. Returns the
 * descriptor or -errno; *ret_size is what there was, -1: no file. */
static int open_file(struct shepherd *s, int64_t *ret_size)
{
        struct stat st;
        int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW, r = 0;
        int fd = openat(s->dir, TABLE_FILE, flags | O_CREAT | O_EXCL, 0600);
        bool is_new = fd >= 0;

        if (fd < 0 && errno == EEXIST)
                fd = openat(s->dir, TABLE_FILE, flags);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || ftruncate(fd, sizeof(struct table)) < 0)
                r = -errno;
        else
                r = -posix_fallocate(fd, 0, sizeof(struct table));
        if (r < 0) {
                close(fd);
                return r;
        }
        *ret_size = is_new ? -1 : st.st_size;
        return fd;
}

int table_open(struct shepherd *s)
{
        int64_t size = -1;
        int fd = open_file(s, &size);

        if (fd < 0)
                return fd;
        s->table = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (s->table == MAP_FAILED)
                return -errno;
        char boot[sizeof(s->table->boot_id)], marker[256];
        read_boot_id(boot, sizeof(boot));
        bool whole = size == sizeof(struct table) && s->table->magic == TABLE_MAGIC;
        unsigned damaged = 0;
        /* Numbers and times of one boot may come again in the next, for others. */
        if (whole && !memcmp(s->table->boot_id, boot, sizeof(boot)))
                damaged = kill_recorded(s);
        if ((!whole && size >= 0) || damaged)
                complain("msg=\"" TABLE_FILE
                         " is damaged: what the last shepherd has left is looked for by its "
                         "marker alone\" bytes=%lld of=%zu damaged_entries=%u",
                         (long long)size, sizeof(struct table), damaged);
        int n = snprintf(marker, sizeof(marker), SHEPHERD_MARKER "%s/", s->instance);
        tree_kill_strays(marker, (size_t)n); /* also processes that the table lacks */
        memset(s->table, 0, sizeof(*s->table));
        memcpy(s->table->boot_id, boot, sizeof(boot));
        s->table->magic = TABLE_MAGIC;
        return 0;
}

unsigned table_take(struct shepherd *s)
{
        static unsigned at;

        for (unsigned i = 0; i < TABLE_MAX; i++, at = (at + 1) % TABLE_MAX) {
                if (s->table->entries[at].pid)
                        continue;
                unsigned entry = at;
                s->table->entries[entry] = (struct table_entry){.pid = 1}; /* taken, not yet a process */
                at = (at + 1) % TABLE_MAX;
                return entry;
        }
        return TABLE_MAX;
}

void table_give(struct shepherd *s, unsigned entry)
{
        if (entry < TABLE_MAX)
                s->table->entries[entry] = (struct table_entry){0};
}
