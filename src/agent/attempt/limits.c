/* Limits of a running attempt are enforced by a control group if available; otherwise the usage of its
 * processes is checked at every tick. */
#include "agent/attempt/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/attempt/kill.h"
#include "agent/attempt/output_tail.h"
#include "agent/container/container_step.h"
#include "agent/machine/energy.h"
#include "agent/model/sandbox.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"

#define ENGINE_BYTES (64u << 20) /* memory that podman and its monitor use */
#define DISK_EVERY   10          /* ticks */
#define DISK_FILES   100000

void limits_prepare(struct attempt *at)
{
        struct agent *a = at->a;

        if (a->energy && queue_is_local(at->q))
                at->energy_from_uj = energy_look(a->energy, clock_boot_ms());
        if (!a->cgroups || !cgroups_limits(a->cgroups) || at->cgroup || !queue_is_local(at->q))
                return;
        struct cgroup_limits l = {
                .memory_bytes = at->memory_bytes, .cpus_milli = at->cpus_milli, .pids = a->config.pids_max};
        struct err err = {""};
        if (container_step_elsewhere(at)) /* the group contains only the engine's own command */
                l.memory_bytes = l.pids = 0;
        else if (attempt_has_container(at) && l.memory_bytes)
                l.memory_bytes += ENGINE_BYTES;
        if (cgroup_get(a->cgroups, &l, &at->cgroup, &err) < 0)
                log_warn("msg=\"no control group for a job\" error=\"%s\"", LOG_TEXT(str_of(err.text)));
}

void limits_release(struct attempt *at)
{
        /* An agent that stops and leaves its jobs running keeps their groups: giving one back would kill the
         * job. */
        bool leaves = at->a->stopping && !at->a->config.kill_on_stop;

        if (at->cgroup && !leaves)
                cgroup_put(at->cgroup);
        at->cgroup = NULL;
}

/* An estimate: of what the machine consumed meanwhile, the part of its processors that the attempt has. */
static void energy_usage(struct attempt *at)
{
        struct energy *e = at->a->energy;

        if (e && queue_is_local(at->q))
                at->result.energy_uj +=
                        energy_share(e, energy_look(e, clock_boot_ms()) - at->energy_from_uj, at->cpus_milli);
}

void limits_usage(struct attempt *at)
{
        struct cgroup_usage u;

        energy_usage(at);
        if (!at->cgroup)
                return;
        cgroup_usage(at->cgroup, &u);
        if (u.cpu_user_ms + u.cpu_system_ms > at->result.cpu_user_ms + at->result.cpu_system_ms) {
                at->result.cpu_user_ms = u.cpu_user_ms;
                at->result.cpu_system_ms = u.cpu_system_ms;
        }
        if (u.memory_peak_bytes > at->result.memory_peak_bytes)
                at->result.memory_peak_bytes = u.memory_peak_bytes;
}

bool limits_oom(struct attempt *at)
{
        struct cgroup_usage u;

        if (container_step_elsewhere(at))
                return at->container.out_of_memory;
        if (!at->cgroup || !at->memory_bytes)
                return false;
        cgroup_usage(at->cgroup, &u);
        return u.oom_kills > 0 || (at->adopted && u.limit_hit);
}

bool limits_killed(struct attempt *at)
{
        struct cgroup_usage u;

        if (container_step_elsewhere(at))
                return at->container.out_of_memory;
        if (!at->cgroup || !at->memory_bytes)
                return false;
        cgroup_usage(at->cgroup, &u);
        return u.oom_kills > 0;
}

/* ---- looking at processes */

struct process {
        int pid, parent, session;
        uint64_t bytes;
        bool known; /* `task` is */
        int task;   /* task of the nearest of this process and its ancestors, by pid; 0: none */
};

/* Usage of the agent's tasks, by the pid of each task's first process. */
struct task {
        int pid;
        uint64_t bytes;
};
struct sample {
        struct process *all;
        struct task *tasks;
        size_t n, task_count, task_cap;
};

static bool read_process(const char *pid, struct process *p)
{
        char path[64], text[1024];

        snprintf(path, sizeof(path), "/proc/%s/stat", pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
                close(fd);
        if (n <= 0)
                return false;
        text[n] = 0;
        *p = (struct process){.pid = (int)strtol(pid, NULL, 10)};
        /* proc(5): 4 ppid, 6 session, 24 rss; the name in field 2 may hold anything up to the last ')' */
        char *at = strrchr(text, ')');
        for (int field = 2; at && field < 24; field++) {
                at = strchr(at + 1, ' ');
                if (at && field + 1 == 4)
                        p->parent = (int)strtol(at, NULL, 10);
                if (at && field + 1 == 6)
                        p->session = (int)strtol(at, NULL, 10);
        }
        if (!at)
                return false;
        p->bytes = strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
        return true;
}

static void read_processes(struct sample *s)
{
        size_t cap = 0;
        DIR *dir = opendir("/proc");
        struct dirent *e;

        while (dir && (e = readdir(dir))) {
                if (e->d_name[0] < '1' || e->d_name[0] > '9')
                        continue;
                MEM_GROW(s->all, cap, s->n + 1);
                if (read_process(e->d_name, &s->all[s->n]))
                        s->n++;
        }
        if (dir)
                closedir(dir);
}

/* Processes and tasks begin with their pid. */
static int by_pid(const void *a, const void *b)
{
        const int *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static struct process *process_find(const struct sample *s, int pid)
{
        return s->n ? bsearch(&pid, s->all, s->n, sizeof(*s->all), by_pid) : NULL;
}

static struct task *task_find(const struct sample *s, int64_t pid)
{
        int key = (int)pid;

        return s->task_count ? bsearch(&key, s->tasks, s->task_count, sizeof(*s->tasks), by_pid) : NULL;
}

static const struct task *task_begins(const struct sample *s, const struct process *p)
{
        const struct task *t = task_find(s, p->pid);

        return t ? t : task_find(s, p->session);
}

/* Finds the task of a process by walking up its ancestors; the walk ends at a process that was reached
 * before, since a job may have a chain of any length. */
static void climb(const struct sample *s, struct process *p)
{
        struct process *up = p;
        const struct task *t = NULL;

        while (up && !up->known && !(t = task_begins(s, up))) {
                up->known = true; /* ends a cycle of processes that were read at different times */
                up = up->parent > 1 ? process_find(s, up->parent) : NULL;
        }
        int task = t ? t->pid : up ? up->task : 0;
        if (t) {
                up->known = true;
                up->task = task;
        }
        for (; task && p != up; p = process_find(s, p->parent))
                p->task = task;
}

static void add_up(struct sample *s)
{
        read_processes(s);
        qsort(s->all, s->n, sizeof(*s->all), by_pid);
        qsort(s->tasks, s->task_count, sizeof(*s->tasks), by_pid);
        for (size_t i = 0; i < s->n; i++) {
                struct process *p = &s->all[i];

                if (!p->known)
                        climb(s, p);
                if (p->task)
                        task_find(s, p->task)->bytes += p->bytes;
        }
}

static bool needs_sampling(const struct attempt *at)
{
        return at->pid > 0 && at->stepping && at->memory_bytes && !attempt_has_container(at) &&
               !(at->cgroup && (cgroups_limits(at->a->cgroups) & CGROUP_MEMORY));
}

/* Checks the attempt's memory. Returns whether it was ended for exceeding the limit. */
static bool sample_memory(struct attempt *at, const struct sample *s)
{
        const struct task *t = needs_sampling(at) ? task_find(s, at->pid) : NULL;

        if (!t)
                return false;
        if (t->bytes > at->memory_seen)
                at->memory_seen = t->bytes;
        if (t->bytes > at->result.memory_peak_bytes)
                at->result.memory_peak_bytes = t->bytes;
        if (t->bytes <= at->memory_bytes)
                return false;
        BUF_CLEANUP struct buf why = {0};
        buf_printf(&why, "it used %llu MiB, more than its memory of %llu MiB",
                   (unsigned long long)(t->bytes >> 20), (unsigned long long)(at->memory_bytes >> 20));
        attempt_kill(at, OUTCOME_LIMIT_EXCEEDED, 0, buf_z(&why), HOLD_MEMORY);
        return true;
}

static void sample_disk(struct attempt *at)
{
        uint64_t disk = at->t->m->disk_bytes;
        char name[64];

        if (!disk || !at->stepping)
                return;
        sandbox_name(at, name);
        uint64_t bytes = fs_tree_bytes(at->a->jobs, name, DISK_FILES);
        if (bytes > disk)
                bytes -= output_tail_disk_bytes(at);
        if (bytes <= disk)
                return;
        BUF_CLEANUP struct buf why = {0};
        buf_printf(&why, "its folder holds %llu MiB, more than its disk of %llu MiB",
                   (unsigned long long)(bytes >> 20), (unsigned long long)(disk >> 20));
        attempt_kill(at, OUTCOME_LIMIT_EXCEEDED, 0, buf_z(&why), HOLD_MEMORY);
}

static void add_tasks(const struct queue *q, struct sample *s)
{
        for (const struct attempt *at = q->lists[ATTEMPT_RUNNING]; at; at = at->next)
                if (needs_sampling(at)) {
                        MEM_GROW(s->tasks, s->task_cap, s->task_count + 1);
                        s->tasks[s->task_count++] = (struct task){.pid = (int)at->pid};
                }
}

void limits_sample(struct agent *a)
{
        static unsigned tick;
        struct sample s = {0};

        tick++;
        energy_look(a->energy, clock_boot_ms()); /* counters begin again after minutes */
        for (size_t i = 0; i < a->queue_count; i++)
                if (queue_is_local(a->queues[i]))
                        add_tasks(a->queues[i], &s);
        if (s.task_count)
                add_up(&s);
        for (size_t i = 0; i < a->queue_count; i++) {
                if (!queue_is_local(a->queues[i]))
                        continue;
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_RUNNING], *next; at; at = next) {
                        next = at->next;
                        if (!sample_memory(at, &s) && tick % DISK_EVERY == 0)
                                sample_disk(at);
                }
        }
        free(s.all);
        free(s.tasks);
}
