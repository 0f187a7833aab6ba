/* cgroup: limits on a job's process tree, and its accounts, through the kernel's control groups.
 *
 * One module drives version 2, version 1 and the hybrid of both: each controller is used where it is mounted,
 * and only where a group can be made under our own. Groups ("slots") are kept and used again, since making
 * and removing one costs more than a short job. What cannot be limited here is told by cgroups_limits(),
 * never pretended. A process enters a slot by writing "0" to cgroup.procs in every one of cgroup_dirs(); who
 * starts it does that. Not thread-safe. Sources: Linux Documentation/admin-guide/cgroup-v2.rst and
 * cgroup-v1/.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

struct cgroups;
struct cgroup;

enum { /* what is real here */
       CGROUP_MEMORY = 1,
       CGROUP_CPU = 2, /* share of the processors, by weight */
       CGROUP_PIDS = 4,
       CGROUP_USAGE = 8, /* cpu time of the whole tree */
       CGROUP_KILL = 16, /* the whole tree can be named, so that none escapes a kill */
       CGROUP_FREEZE = 32,
};

struct cgroup_limits {
        uint64_t memory_bytes; /* 0: none */
        uint64_t cpus_milli;   /* 1000 is the weight of one processor; 0: one */
        uint64_t pids;         /* 0: none */
};

struct cgroup_usage {
        uint64_t memory_peak_bytes; /* since cgroup_get; 0 when not known */
        uint64_t cpu_user_ms, cpu_system_ms;
        uint64_t oom_kills; /* processes killed for want of memory since cgroup_get */
        bool limit_hit;     /* memory was refused at the limit since cgroup_get */
};

/* Finds what can be written and makes the group `name` (a file name) under our own in each hierarchy. 0 also
 * when nothing can be: then cgroups_limits is 0 and cgroup_get gives -ENOTSUP. NULL paths: those of
 * /proc/self. */
int cgroups_open(const char *name, const char *mountinfo_path, const char *self_path, struct cgroups **ret,
                 struct err *err);
/* Removes the slots that are empty, and our groups. Slots in use stay behind, to be adopted. NULL is fine. */
void cgroups_free(struct cgroups *cs);
/* Our own group's directory in the hierarchy of version 2, or (version 2 false) in that of version 1 which
 * freezes; for free(). NULL: there is none. */
char *cgroups_own(bool v2);
unsigned cgroups_limits(const struct cgroups *cs);
void cgroups_describe(const struct cgroups *cs,
                      struct buf *out); /* "memory (v1), cpu (v1), kill (v2)" or "none" */
/* Kills what runs in slots of an earlier life that were not adopted, and removes them. Returns how many slots
 * still had processes when it gave up (0: all is gone). */
int cgroups_sweep(struct cgroups *cs);

/* A slot with these limits and nothing in it, not frozen; it stays the cgroups' and goes back with
 * cgroup_put. 0, -ENOTSUP, or -errno with err. */
int cgroup_get(struct cgroups *cs, const struct cgroup_limits *limits, struct cgroup **ret, struct err *err);
/* The slot of that number, with what runs in it; made when it isn't there. As cgroup_get. */
int cgroup_adopt(struct cgroups *cs, unsigned number, struct cgroup **ret, struct err *err);
void cgroup_put(struct cgroup *cg); /* what still runs in it is killed before it is used again */
unsigned cgroup_number(const struct cgroup *cg);
const char *const *cgroup_dirs(const struct cgroup *cg); /* absolute, NULL behind the last */
void cgroup_usage(struct cgroup *cg, struct cgroup_usage *ret);
bool cgroup_empty(struct cgroup *cg);
int cgroup_kill(struct cgroup *cg); /* 0: nothing is left; -EAGAIN: something is still dying; -errno */
