/* Ends all processes that a child started, and finds out when none is left.
 *
 * With a control group these are the processes in the group (groups.c). Without one they are the child's
 * process group and processes that left it: the kernel makes their orphans our children, since we are the
 * subreaper, and each still has the marker in the environment it was started with. An orphan that has wiped
 * its environment cannot be attributed; it is ended when nothing of the agent's runs. A container's
 * processes are found by the marker alone, wherever its engine has put them.
 *
 * A child whose main process has ended is ENDING until the last process of its tree is dead, which is
 * checked every few milliseconds; a process that survives SIGKILL for ENDING_MAX_MS (stuck in the kernel) is
 * left to the next sweep.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

#define ENDING_MAX_MS 5000
#define AGAIN_MS      2
#define AGAIN_MAX_MS  10
#define PF_FORKNOEXEC 0x40 /* linux/sched.h: forked, and has not executed a program yet */
#define REAP_MAX      256 /* dead children in one turn: a job may make orphans faster than they can be reaped */
#define LOOK_AGAIN_MS 100 /* interval of looks at all orphans */
/* repeats a stop of a container that starts, or makes processes, while it is being stopped */
#define STOP_AGAIN_MS 250

static struct slot *slot_of(struct shepherd *s, const struct child *c)
{
        if (c->guest)
                return NULL; /* the process is in another group */
        if (c->group || s->agent_uid != s->uid)
                return c->group;
        return c->tell.slot < SLOTS_MAX ? s->slots[c->tell.slot] : NULL;
}

/* Signals the process if it has the marker. Returns whether it did. A descriptor ensures that the examined
 * process is the one that is signalled, even if its number is reused. */
static bool signal_if_marked(pid_t pid, const char *marker, size_t length, bool whole, int sig)
{
        if (!look_for(pid, marker, length, whole))
                return false;
        int fd = pidfd_open(pid, 0);
        bool done =
                fd >= 0 && look_for(pid, marker, length, whole) && pidfd_send_signal(fd, sig, NULL, 0) == 0;
        if (fd >= 0)
                close(fd);
        return done;
}

void tree_kill_strays(const char *marker, size_t length)
{
        /* repeated: the next look finds processes started during the last one */
        for (int round = 0; round < 8; round++) {
                DIR *dir = opendir("/proc");
                struct dirent *e;
                bool any = false;

                look_begin();
                while (dir && (e = readdir(dir))) {
                        long pid = strtol(e->d_name, NULL, 10);

                        if (pid > 1 && pid != getpid() &&
                            signal_if_marked((pid_t)pid, marker, length, false, SIGKILL))
                                any = true;
                }
                if (dir)
                        closedir(dir);
                if (look_end() && !any)
                        return;
                usleep(2000);
        }
}

static ino_t pid_namespace(const char *pid)
{
        char path[64];
        struct stat st;

        snprintf(path, sizeof(path), "/proc/%s/ns/pid", pid);
        return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Signals the processes with the child's marker. A container's processes are neither our children nor in the
 * group of the engine that was started. Processes of the engine itself are never stopped: it may hold a lock
 * that all its other commands wait for. */
static unsigned signal_marked(const struct child *c, int sig)
{
        if (!c->container || !c->marker)
                return 0;
        ino_t ours = pid_namespace("self");
        DIR *dir = opendir("/proc");
        struct dirent *e;
        unsigned n = 0;
        look_begin();
        while (dir && (e = readdir(dir))) {
                long pid = strtol(e->d_name, NULL, 10);

                if (pid > 1 && pid != getpid() && pid != c->tell.pid &&
                    (sig == SIGKILL || pid_namespace(e->d_name) != ours) &&
                    signal_if_marked((pid_t)pid, c->marker, strlen(c->marker), true, sig))
                        n++;
        }
        if (dir)
                closedir(dir);
        look_end();
        return n;
}

/* The text of a small file of /proc, or as much of it as there is room for; "" if it cannot be read. */
static const char *read_proc(const char *path, char *room, size_t size)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, room, size - 1);

        if (fd >= 0)
                close(fd);
        room[n > 0 ? n : 0] = 0;
        return room;
}

/* Kills children of ours that are orphans of jobs, not main processes, if `which` selects them; returns
 * their number. */
static unsigned kill_orphans_if(struct shepherd *s,
                                bool (*which)(struct shepherd *s, const struct child *c, pid_t pid),
                                const struct child *c)
{
        char path[64], room[16384];
        unsigned found = 0;

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
        look_begin();
        for (const char *p = read_proc(path, room, sizeof(room)); *p;) {
                char *end;
                long pid = strtol(p, &end, 10);

                if (end == p)
                        break;
                p = end;
                if (pid > 1 && !child_by_pid(s, (pid_t)pid) && !look_is((pid_t)pid) &&
                    which(s, c, (pid_t)pid) && kill((pid_t)pid, SIGKILL) == 0)
                        found++;
        }
        look_end();
        return found;
}

/* Returns whether the process belongs to c; always true if nothing else runs. */
static bool is_of(struct shepherd *s, const struct child *c, pid_t pid)
{
        bool alone = s->running == c && !c->run_next;

        return alone || (c->marker && look_for(pid, c->marker, strlen(c->marker), true));
}

/* Returns whether a process of podman's container has lost its monitor, because it is our child now. It may
 * be the one that waits to become the program, which has no marker yet and is in no group of the job's; if
 * podman had not recorded it, it would wait for ever. (Monitors are in groups of other names.) */
static bool has_no_monitor(struct shepherd *s, const struct child *c, pid_t pid)
{
        char path[64], room[16384];

        (void)s, (void)c;
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        const char *group = strstr(read_proc(path, room, sizeof(room)), "/libpod-");
        return group && !strstr(room, "/libpod-conmon-");
}

static unsigned kill_orphans(struct shepherd *s, const struct child *c)
{
        return kill_orphans_if(s, is_of, c);
}

/* The child's process group, or the child alone before it has made one. Once it is reaped its number may be
 * somebody else's: then we look only whether there is such a group, all of which had SIGKILL (tree_reap). */
static int signal_group(const struct child *c, int sig)
{
        if (c->state != CHILD_RUNNING)
                return kill(-c->tell.pid, 0);
        int r = kill(-c->tell.pid, sig);
        return r < 0 && errno == ESRCH ? kill(c->tell.pid, sig) : r;
}

/* SIGKILL to all that is left; returns whether anything was. */
static bool kill_now(struct shepherd *s, struct child *c)
{
        bool any = false;
        struct slot *sl = slot_of(s, c);

        if (sl && slot_kill(sl))
                any = true;
        if (sl && (c->suspended || c->stuck))
                slot_freeze(sl, false);
        if (c->tell.pid > 1 && signal_group(c, SIGKILL) == 0)
                any = true;
        if (!sl && kill_orphans(s, c) > 0)
                any = true;
        if (signal_marked(c, SIGKILL) > 0)
                any = true;
        return any;
}

void tree_suspend(struct shepherd *s, struct child *c, bool on)
{
        struct slot *sl = slot_of(s, c);

        if (c->state != CHILD_RUNNING || c->suspended == on)
                return;
        c->suspended = on;
        if (c->container) {
                signal_marked(c, on ? SIGSTOP : SIGCONT);
                c->again_at = boot_ms() + STOP_AGAIN_MS;
                return;
        }
        if (sl && slot_freeze(sl, on))
                return;
        signal_group(c, on ? SIGSTOP : SIGCONT);
}

void tree_signal(const struct child *c, int signal)
{
        if (c->state == CHILD_RUNNING && signal > 0 && signal <= SIGRTMAX)
                signal_group(c, signal);
}

void tree_kill(struct shepherd *s, struct child *c, enum shepherd_why why, int64_t grace_ms)
{
        if (c->state != CHILD_RUNNING)
                return;
        if (c->tell.why == SHEPHERD_ITSELF)
                c->tell.why = why;
        if (grace_ms > 0 && !c->kill_at) {
                c->kill_at = boot_ms() + grace_ms;
                if (c->suspended)
                        tree_suspend(s, c, false);
                signal_group(c, SIGTERM);
        } else if (grace_ms <= 0) {
                c->kill_at = boot_ms() + AGAIN_MS; /* repeated until it is gone */
                kill_now(s, c);
        }
}

/* Looks whether anything of an ENDING child is left. */
static void try_end(struct shepherd *s, struct child *c, int64_t now)
{
        if (kill_now(s, c) && now - c->ending_since < ENDING_MAX_MS) {
                c->again_at = now + AGAIN_MS;
                return;
        }
        child_done(s, c);
}

/* Returns whether the child's process has executed its program. Field 9 of /proc/PID/stat (proc(5)). */
static bool in_program(pid_t pid)
{
        char path[64], room[1024];

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        const char *p = strrchr(read_proc(path, room, sizeof(room)), ')');
        for (int field = 2; p && field < 9; field++)
                p = strchr(p + 1, ' ');
        return p && !(strtoul(p, NULL, 10) & PF_FORKNOEXEC);
}

/* Handles a child that has not executed its program in time: it is killed; if the kernel does not end it
 * even then, it is reported as failed and left behind. */
static void check_start(struct shepherd *s, struct child *c, int64_t now)
{
        if (!c->stuck && (c->suspended || in_program(c->tell.pid))) {
                c->start_by = c->suspended ? now + s->start_max_ms : 0;
                return;
        }
        if (c->stuck) {
                complain("msg=\"a process hangs on the way to its program, and cannot be killed\" pid=%d",
                         (int)c->tell.pid);
                child_done(s, c);
                return;
        }
        complain("msg=\"a process hangs on the way to its program\" pid=%d where=%u", (int)c->tell.pid,
                 s->table->entries[c->entry].where);
        c->stuck = c->failed = true;
        c->tell.error = ETIMEDOUT;
        c->tell.where = s->table->entries[c->entry].where;
        c->start_by = now + ENDING_MAX_MS;
        c->kill_at = now + AGAIN_MS;
        kill_now(s, c);
}

static uint64_t micros(struct timeval t)
{
        return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

/* Returns a dead child that is not reaped; 0: none. */
static pid_t next_dead(void)
{
        siginfo_t info = {0};

        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 ? info.si_pid : 0;
}

static void end_guests(struct shepherd *s, const struct child *host)
{
        for (struct child *c = s->running; c; c = c->run_next)
                if (c->guest && !host->guest && child_is_beside(c, &host->tell.id))
                        tree_kill(s, c, SHEPHERD_KILLED, 0);
}

bool tree_reap(struct shepherd *s)
{
        int status;
        struct rusage u;
        bool orphan = false;
        pid_t pid = 0;

        for (unsigned n = 0; n < REAP_MAX && (pid = next_dead()) > 0; n++) {
                struct child *c = child_by_pid(s, pid);

                if (c) /* while its number cannot be reused */
                        kill(-pid, SIGKILL);
                if (wait4(pid, &status, WNOHANG | __WALL, &u) != pid)
                        break;
                if (!c) {
                        orphan = true; /* its children are now ours */
                        continue;
                }
                c->tell.status = status;
                c->tell.ended_ms = (uint64_t)wall_ms();
                c->tell.cpu_user_us = micros(u.ru_utime);
                c->tell.cpu_system_us = micros(u.ru_stime);
                c->tell.memory_peak_bytes = (uint64_t)u.ru_maxrss * 1024;
                const struct table_entry *e = &s->table->entries[c->entry];
                if (e->error && WIFEXITED(status) && !c->stuck) {
                        c->failed = true;
                        c->tell.error = e->error;
                        c->tell.where = e->where;
                }
                c->state = CHILD_ENDING;
                c->ending_since = boot_ms();
                end_guests(s, c);
                try_end(s, c, c->ending_since);
        }
        if (orphan && !s->look_at)
                s->look_at = s->looked_ms + LOOK_AGAIN_MS;
        return pid > 0;
}

int64_t tree_timers(struct shepherd *s, int64_t now)
{
        int64_t first = INT64_MAX;
        bool ended = s->lease_until && now >= s->lease_until;

        if (s->look_at && now >= s->look_at) {
                s->look_at = 0;
                s->looked_ms = now;
                kill_orphans_if(s, has_no_monitor, NULL);
        }
        if (s->lease_until && !ended && s->running)
                first = s->lease_until;
        if (s->look_at && s->look_at < first)
                first = s->look_at;
        for (struct child *c = s->running, *next; c; c = next) {
                next = c->run_next;
                if (c->state == CHILD_ENDING) {
                        if (now >= c->again_at)
                                try_end(s, c, now);
                        if (c->state == CHILD_ENDING && c->again_at < first)
                                first = c->again_at;
                        continue;
                }
                if (c->start_by && now >= c->start_by)
                        check_start(s, c, now);
                if (c->state == CHILD_DONE)
                        continue;
                if (c->start_by && c->start_by < first)
                        first = c->start_by;
                if (c->container && c->suspended) {
                        if (now >= c->again_at) {
                                signal_marked(c, SIGSTOP);
                                c->again_at = now + STOP_AGAIN_MS;
                        }
                        if (c->again_at < first)
                                first = c->again_at;
                }
                bool waits = !c->kill_at || c->kill_at > now + AGAIN_MAX_MS; /* waits for a long grace */
                if (ended && waits)
                        tree_kill(s, c, SHEPHERD_LEASE_ENDED, 0);
                if (c->walltime_at && now >= c->walltime_at && !c->kill_at)
                        tree_kill(s, c, SHEPHERD_WALLTIME, 0);
                if (c->kill_at && now >= c->kill_at) {
                        kill_now(s, c);
                        c->kill_at = now + AGAIN_MAX_MS;
                }
                if (c->kill_at && c->kill_at < first)
                        first = c->kill_at;
                if (c->walltime_at && !c->kill_at && c->walltime_at < first)
                        first = c->walltime_at;
        }
        return first == INT64_MAX ? -1 : first > now ? first - now : 0;
}
