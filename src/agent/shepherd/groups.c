/* Control groups: those that the agent has made for its jobs and, if jobs run as other users, the shepherd's
 * own.
 *
 * An agent of our own user names the directories of its groups, because it measures and limits them, and may
 * be started again in another place. An agent of another user names nothing: it could name a file of root's,
 * or a link to one. For its children we make groups ourselves, beneath a directory that was named when we
 * were started as root (--cgroup): a job's processes cannot leave its group, whatever sessions they make and
 * whatever they wipe from their environment.
 *
 * In both cases a directory must be the kernel's (fstatfs), and the files in it are opened beneath it,
 * without following links.
 *
 * Version 2 kills a whole group at once. Otherwise (version 1's freezer) the group is frozen, all listed
 * processes are killed, and it is thawed so that they can die; processes started meanwhile are found by the
 * next look (tree.c).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

#define ROUNDS_MAX 8

static int open_beneath(int dir, const char *name, int flags)
{
        struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
                                          RESOLVE_NO_XDEV};

        return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

static bool is_kernels(int dir)
{
        struct statfs fs;

        return fstatfs(dir, &fs) == 0 &&
               (fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC);
}

/* Adds the files of a group to the slot. 0 or an errno. */
static int add_group(struct slot *sl, int dir)
{
        if (!is_kernels(dir))
                return EINVAL;
        int fd = open_beneath(dir, "cgroup.procs", O_RDWR);
        if (fd < 0)
                return errno;
        sl->procs[sl->count++] = fd;
        if (sl->kill < 0)
                sl->kill = open_beneath(dir, "cgroup.kill", O_WRONLY);
        if (sl->freeze < 0) {
                sl->freeze = open_beneath(dir, "cgroup.freeze", O_WRONLY);
                sl->freeze_v2 = sl->freeze >= 0;
                if (sl->freeze < 0)
                        sl->freeze = open_beneath(dir, "freezer.state", O_WRONLY);
        }
        return 0;
}

static struct slot *slot_new(void)
{
        struct slot *sl = must(calloc(1, sizeof(*sl)));

        sl->kill = sl->freeze = -1;
        return sl;
}

static void slot_close(struct slot *sl)
{
        for (unsigned i = 0; i < sl->count; i++)
                close(sl->procs[i]);
        if (sl->kill >= 0)
                close(sl->kill);
        if (sl->freeze >= 0)
                close(sl->freeze);
        free(sl->dirs);
        free(sl);
}

/* Returns whether the group still exists: a removed one fails with ENODEV, even if it was made again. */
static bool slot_lives(const struct slot *sl)
{
        char c;

        return pread(sl->procs[0], &c, 1, 0) >= 0;
}

/* ---- freezing and killing */

bool slot_freeze(const struct slot *sl, bool on)
{
        const char *word = sl->freeze_v2 ? (on ? "1" : "0") : on ? "FROZEN" : "THAWED";

        return sl->freeze >= 0 && pwrite(sl->freeze, word, strlen(word), 0) > 0;
}

/* Kills all that is listed; returns how many there were. */
static unsigned kill_listed(const struct slot *sl)
{
        char room[16384];
        size_t kept = 0;
        unsigned n = 0;
        off_t at = 0;

        for (ssize_t got; (got = pread(sl->procs[0], room + kept, sizeof(room) - kept - 1, at)) > 0;) {
                char *p = room, *end;

                at += got;
                kept += (size_t)got;
                room[kept] = 0;
                while ((end = strchr(p, '\n'))) {
                        long pid = strtol(p, NULL, 10);

                        if (pid > 1 && pid != getpid() && kill((pid_t)pid, SIGKILL) == 0)
                                n++;
                        p = end + 1;
                }
                kept -= (size_t)(p - room);
                memmove(room, p, kept);
        }
        return n;
}

bool slot_kill(const struct slot *sl)
{
        char c;

        if (pread(sl->procs[0], &c, 1, 0) <= 0)
                return false;
        if (sl->kill >= 0 && pwrite(sl->kill, "1", 1, 0) == 1)
                return true;
        bool frozen = slot_freeze(sl, true);
        for (unsigned round = 0, last = 0, n; round < ROUNDS_MAX; round++, last = n)
                if ((n = kill_listed(sl)) == last)
                        break;
        if (frozen)
                slot_freeze(sl, false);
        return true;
}

/* ---- the agent's groups */

int slot_find(struct shepherd *s, const struct shepherd_start *r, const char *dirs, size_t size,
              struct slot **ret)
{
        *ret = NULL;
        if (r->cgroup_count == 0)
                return 0;
        if (s->agent_uid != s->uid)
                return EPERM;
        if (r->slot >= SLOTS_MAX)
                return EINVAL;
        struct slot *sl = s->slots[r->slot];
        if (sl && sl->dirs_size == size && !memcmp(sl->dirs, dirs, size) && slot_lives(sl)) {
                slot_freeze(sl, false);
                *ret = sl;
                return 0;
        }
        if (sl)
                slot_close(sl);
        s->slots[r->slot] = sl = slot_new();
        sl->dirs = must(malloc(size));
        sl->dirs_size = size;
        memcpy(sl->dirs, dirs, size);
        for (const char *d = sl->dirs; sl->count < r->cgroup_count; d += strlen(d) + 1) {
                int dir = open(d, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                int error = dir < 0 ? errno : add_group(sl, dir);

                if (dir >= 0)
                        close(dir);
                if (error) {
                        slot_close(sl);
                        s->slots[r->slot] = NULL;
                        return error;
                }
        }
        slot_freeze(sl, false);
        *ret = sl;
        return 0;
}

/* ---- our own groups */

/* Opens a group of our own by its name, made if it is missing; NULL: on failure. */
static struct slot *own_open(struct shepherd *s, const char *name)
{
        if (mkdirat(s->groups, name, 0755) < 0 && errno != EEXIST)
                return NULL;
        int dir = open_beneath(s->groups, name, O_PATH | O_DIRECTORY);
        if (dir < 0)
                return NULL;
        struct slot *sl = slot_new();
        int error = add_group(sl, dir);
        close(dir);
        if (error) {
                slot_close(sl);
                return NULL;
        }
        snprintf(sl->name, sizeof(sl->name), "%s", name);
        return sl;
}

/* Kills processes that an earlier shepherd has left in the groups; removes empty groups. */
static void sweep(struct shepherd *s)
{
        int fd = open_beneath(s->groups, ".", O_RDONLY | O_DIRECTORY);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;

        while (dir && (e = readdir(dir))) {
                if (e->d_name[0] != 'j')
                        continue;
                struct slot *sl = own_open(s, e->d_name);
                for (unsigned i = 0; sl && i < 500 && slot_kill(sl); i++)
                        usleep(2000);
                if (sl)
                        slot_close(sl);
                unlinkat(s->groups, e->d_name, AT_REMOVEDIR);
        }
        if (dir)
                closedir(dir);
}

/* The directory of our groups in this one: made, and one where a group can be ended as a whole; or -1. */
static int open_in(const char *dir, const char *name)
{
        static const char *const files[] = {"cgroup.kill", "cgroup.freeze", "freezer.state"};
        int own = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), groups = -1;
        bool good = false;

        if (own >= 0 && is_kernels(own) && (mkdirat(own, name, 0755) == 0 || errno == EEXIST))
                groups = open_beneath(own, name, O_PATH | O_DIRECTORY);
        for (unsigned i = 0; i < 3 && groups >= 0; i++)
                good = good || faccessat(groups, files[i], W_OK, 0) == 0;
        if (!good && groups >= 0) {
                close(groups);
                unlinkat(own, name, AT_REMOVEDIR);
        }
        if (own >= 0)
                close(own);
        return good ? groups : -1;
}

void groups_open(struct shepherd *s, const char *const dirs[], unsigned count)
{
        char name[64];

        s->groups = -1;
        if (!s->users_path || s->uid != 0 || strchr(s->instance, '/'))
                return;
        snprintf(name, sizeof(name), "drover-jobs-%.13s", s->instance);
        for (unsigned i = 0; i < count && dirs[i] && s->groups < 0; i++)
                s->groups = open_in(dirs[i], name);
        if (s->groups >= 0)
                sweep(s);
        else if (dirs[0])
                complain("msg=\"no control groups for jobs can be made\" dir=%s", dirs[0]);
}

struct slot *groups_take(struct shepherd *s)
{
        if (s->groups < 0)
                return NULL;
        while (s->idle_groups) {
                struct slot *sl = s->idle_groups;

                s->idle_groups = sl->idle_next;
                if (slot_lives(sl)) {
                        slot_freeze(sl, false);
                        return sl;
                }
                slot_close(sl);
        }
        static unsigned number;
        char name[16];
        snprintf(name, sizeof(name), "j%u", number++);
        return own_open(s, name);
}

void groups_give(struct shepherd *s, struct slot *sl)
{
        char c;

        if (pread(sl->procs[0], &c, 1, 0) == 0) {
                sl->idle_next = s->idle_groups;
                s->idle_groups = sl;
                return;
        }
        slot_close(sl); /* a process in it cannot be killed now: the group is not used again */
}

static void remove_agents(char *dir, unsigned count)
{
        for (unsigned k = 0; k < count; k++, dir += strlen(dir) + 1) {
                rmdir(dir);
                char *slash = strrchr(dir, '/');
                if (slash && slash > dir) {
                        *slash = 0;
                        rmdir(dir); /* works with the last of them */
                        *slash = '/';
                }
        }
}

void groups_remove(struct shepherd *s)
{
        char name[64], link[32];

        for (unsigned i = 0; i < SLOTS_MAX; i++)
                if (s->slots[i])
                        remove_agents(s->slots[i]->dirs, s->slots[i]->count);
        if (s->groups < 0)
                return;
        sweep(s);
        snprintf(link, sizeof(link), "/proc/self/fd/%d/..", s->groups);
        snprintf(name, sizeof(name), "drover-jobs-%.13s", s->instance);
        int own = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (own >= 0)
                unlinkat(own, name, AT_REMOVEDIR);
}
