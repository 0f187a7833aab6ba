/* cgroup: limits on a job's process tree, and its accounts, through the kernel's control groups.
 *
 * One module drives version 2, version 1 and the hybrid of both: each controller is used where it is mounted,
 * and only where a group can be made under our own. Groups ("slots") are kept and used again, since making
 * and removing one costs more than a short job. cgroups_limits() tells which limits are enforced on this
 * machine. A process enters a slot by writing "0" to cgroup.procs in each of cgroup_dirs(), between fork and
 * exec. Not thread-safe. Sources: Linux Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

struct cgroups;
struct cgroup;

enum { /* capabilities of this machine, see cgroups_limits() */
       CGROUP_MEMORY = 1,
       CGROUP_CPU = 2, /* share of the processors, by weight */
       CGROUP_PIDS = 4,
       CGROUP_USAGE = 8, /* cpu time of the whole tree */
       CGROUP_KILL = 16, /* all processes of the tree can be listed, so that none escapes a kill */
       CGROUP_FREEZE = 32,
};

struct cgroup_limits {
        uint64_t memory_bytes; /* 0: none */
        uint64_t cpus_milli;   /* 1000 is the weight of one processor; 0: one */
        uint64_t pids;         /* 0: none */
};

struct cgroup_usage {
        uint64_t memory_peak_bytes; /* since cgroup_get; 0 when not known */
        uint64_t memory_now_bytes;  /* likewise, what cgroup_get found in the slot left out */
        uint64_t cpu_user_ms, cpu_system_ms;
        uint64_t oom_kills; /* processes killed for want of memory since cgroup_get */
        bool limit_hit;     /* memory was refused at the limit since cgroup_get */
};

/* Makes the group `name` (a file name) under our own in each hierarchy that is writable. 0, also when none is
 * writable: then cgroups_limits returns 0 and cgroup_get -ENOTSUP. NULL paths stand for the files of
 * /proc/self. */
int cgroups_open(const char *name, const char *mountinfo_path, const char *self_path, struct cgroups **ret,
                 struct err *err);
/* Removes the slots that are empty, and our groups. Slots in use stay behind, to be adopted. NULL is fine. */
void cgroups_free(struct cgroups *cs);
/* Directory of our own group in the hierarchy of version 2, or (v2 false) in version 1's freezer hierarchy.
 * The caller frees the path. NULL: there is none. */
char *cgroups_own(bool v2);
unsigned cgroups_limits(const struct cgroups *cs);
void cgroups_describe(const struct cgroups *cs,
                      struct buf *out); /* "memory (v1), cpu (v1), kill (v2)" or "none" */
/* Kills the processes in slots of an earlier run of this program that were not adopted, and removes the
 * slots. Returns the number of slots that still had processes when it gave up (0: all are removed). */
int cgroups_sweep(struct cgroups *cs);

/* Gives an empty slot with these limits, not frozen. The slot remains owned by cs and is returned with
 * cgroup_put. 0, -ENOTSUP, or -errno with err. */
int cgroup_get(struct cgroups *cs, const struct cgroup_limits *limits, struct cgroup **ret, struct err *err);
/* Gives the slot of that number with the processes in it; makes the slot if it does not exist. Returns as
 * cgroup_get. */
int cgroup_adopt(struct cgroups *cs, unsigned number, struct cgroup **ret, struct err *err);
void cgroup_put(struct cgroup *cg); /* processes still in the slot are killed before its next use */
unsigned cgroup_number(const struct cgroup *cg);
const char *const *cgroup_dirs(const struct cgroup *cg); /* absolute, NULL behind the last */
void cgroup_usage(struct cgroup *cg, struct cgroup_usage *ret);
bool cgroup_empty(struct cgroup *cg);
int cgroup_kill(struct cgroup *cg); /* 0: the slot is empty; -EAGAIN: processes are still ending; -errno */
