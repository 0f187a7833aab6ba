/* shepherd: owns the running children of one agent, so that the agent may be killed and restarted without
 * ending jobs.
 *
 * Uses the C library only. One loop, whose thread has all state; launchers are threads that make children
 * and wait with them. Files: main (options, lock, socket), serve (messages of the agent), start (requests
 * for a child), child (from fork to the program), launcher (making a child without fork), containment
 * (isolating it), tree (killing all its processes), look (which processes are a job's), groups (control
 * groups), table (pids on disk, for the next shepherd), begun (tasks that have begun, for the agent), users
 * (the map of users), sandbox (folders of jobs), world (clock and log).
 *
 * The agent may be of another user, and is not trusted then: the table of what it may ask for is in
 * drover-shepherd(8), "What an agent may ask for". Code that runs as root takes names from it, never paths.
 *
 * The states of a child:
 *
 *      start.c            reap            tree.c finds nothing left
 *   ----------> RUNNING -----> ENDING ---------------------------> EXITED or FAILED ---FORGET---> gone
 *                  |                                                      ^
 *                  '-- it hangs before its program, deaf to SIGKILL ------'
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "agent/shepherd/containment.h"
#include "run/process/shepherd_protocol.h"

#define TABLE_MAX    8192 /* most children that run at once */
#define BUCKETS      256  /* more buckets would make fork copy more pages for each job */
#define SLOTS_MAX    4096
#define CHILDREN_MAX SHEPHERD_BEGUN_MAX /* with ended children that the agent has not forgotten */
#define LINGER_MS    5000               /* time without agent and children after which the shepherd ends */
#define START_MAX_MS 60000

enum child_state { CHILD_RUNNING, CHILD_ENDING, CHILD_DONE };

/* Flag in an id's step: the child is the agent's own, not a job's. */
#define SHEPHERD_NO_JOBS 0x80000000u

struct child {
        struct child *id_next, *pid_next;   /* hash chains */
        struct child *run_next, **run_link; /* list of the children that are not DONE */
        struct child *dirty_next;           /* list of the children to report to the agent */
        bool dirty, suspended, failed, container;
        bool stuck; /* killed before it executed its program */
        bool guest; /* SHEPHERD_GUEST */
        enum child_state state;
        struct shepherd_child tell; /* state as reported to the agent */
        struct slot *group;         /* control group of its own, made here; NULL: the agent's, or none */
        unsigned entry;             /* index in the table */
        uint32_t begun;             /* index in the file of begun tasks; SHEPHERD_BEGUN_MAX: none */
        char *remove;               /* sandbox to remove at its end, or NULL */
        char *secrets;              /* sandbox, if it has credentials; or NULL */
        char *marker;               /* SHEPHERD_MARKER and value, or NULL */
        int64_t start_by; /* time by which it must have executed its program; 0: it has, or has no limit */
        int64_t kill_at, ending_since, again_at, walltime_at; /* CLOCK_BOOTTIME ms; 0: never */
};

/* The descriptors of one control group, kept while the slot's directories are the same. */
struct slot {
        struct slot *idle_next;
        char name[16]; /* name of a group made here */
        char *dirs;    /* paths from the request, `count` of them; NULL: the group was made here */
        size_t dirs_size;
        unsigned count;
        int procs[SHEPHERD_CGROUPS_MAX];
        int kill, freeze; /* -1: none */
        bool freeze_v2;
};

struct table_entry { /* shared with the child until it has executed its program */
        int32_t pid;
        uint32_t error, where;
        uint32_t zero;
        int64_t start_boot_ms;
};
struct table {
        uint64_t magic;
        char boot_id[40];
        struct table_entry entries[TABLE_MAX];
};

struct shepherd {
        int dir, listener, agent, signals; /* descriptors; agent -1: none */
        int jobs;                          /* folder in which sandboxes are made for other users; -1: none */
        int passed;                        /* descriptor that came with the present message; -1: none */
        uid_t agent_uid; /* user that may connect, and may not be a job's; our own: nobody else */
        bool asked;      /* the agent has sent HELLO, which is not answered yet */
        bool greeted;    /* HELLO was answered */
        bool pinged;     /* the agent has sent a ping, which is not answered yet */
        bool listing;    /* LISTED is sent after list_left dirty children have been reported */
        size_t list_left;
        int groups; /* directory of the control groups made here; -1: none */
        struct slot *idle_groups;
        bool quit;
        uid_t uid;
        gid_t gid;
        const char *instance;
        const char *users_path; /* NULL: children run as the shepherd's own user */
        uid_t min_uid;
        int64_t start_max_ms; /* longest time from the fork to the program */
        struct table *table;
        struct shepherd_begun *begun;
        struct containment *containment;
        int no_view; /* errno: why Drover's folders cannot be hidden from jobs; 0: they can */
        struct child *by_id[BUCKETS], *by_pid[BUCKETS];
        struct child *running;
        struct child *dirty_first, **dirty_last;
        int64_t tell_at; /* boot ms: latest time to report dirty children; 0: at once */
        size_t child_count, running_count;
        struct slot *slots[SLOTS_MAX];
        int64_t lease_until; /* boot ms; 0: none */
        int64_t start_by;    /* deadline of the next START: boot ms; 0: none */
        int64_t idle_since;
        int64_t look_at, looked_ms; /* next and last search for orphans of containers: boot ms; look_at 0: no
                                       search is needed */
        char *message;              /* buffer for one batch */
};

/* world.c */
int64_t boot_ms(void);
int64_t wall_ms(void);
void *must(void *p); /* p, or abort */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* serve.c */
void serve_accept(struct shepherd *s);
void serve_agent(struct shepherd *s); /* called when the socket is readable */
/* Reads the agent's messages until the lease is valid again or none is left: after this process was stopped,
 * renewals wait in the socket, and the lease may end only if the agent is silent. */
void serve_renewals(struct shepherd *s);
void serve_flush(
        struct shepherd *s); /* reports dirty children; those that the socket does not take stay dirty */
bool serve_waits(const struct shepherd *s); /* returns whether there is something to report now */
/* Returns when there will be something to report, unless something happens before: boot ms; INT64_MAX:
 * never. */
int64_t serve_time(const struct shepherd *s);
void serve_dirty(struct shepherd *s, struct child *c);
/* Reports a child that has begun a little later: many have ended by then, and are reported once. */
void serve_begun(struct shepherd *s, struct child *c);
/* Returns whether both are of the same attempt. */
bool child_is_beside(const struct child *c, const struct shepherd_id *id);
struct child *child_by_id(struct shepherd *s, const struct shepherd_id *id);
struct child *child_by_pid(struct shepherd *s, pid_t pid);
void child_done(struct shepherd *s, struct child *c); /* called when no process of the child is left */
/* Handles a batch of records, aligned to 8 bytes. Returns false if the batch is malformed; records before
 * the malformed one have been handled. */
bool serve_batch(struct shepherd *s, const char *p, size_t n);
/* start.c: reads and checks the strings of a request; an invalid request makes a FAILED child */
void start_child(struct shepherd *s, const struct shepherd_start *r, const char *strings, size_t size);
/* child.c. A checked request. Everything it points to is borrowed until the child exists, except the entry,
 * which is the child's until it has ended. */
struct plan {
        const struct shepherd_start *r;
        struct table_entry *entry;
        const struct user *user;
        struct containment_job contained;
        pid_t parent;
        int passed; /* standard input, with SHEPHERD_STDIN_FD */
        unsigned group_count;
        int groups[SHEPHERD_CGROUPS_MAX]; /* descriptors of cgroup.procs of the groups that it enters */
        const char *sandbox, *cwd, *in, *out, *err, *path;
        char *const *argv, *const *envp;
};
/* Returns the child's pid, or -1 with errno. Does not return in the child. */
pid_t child_start(const struct plan *p);
/* launcher.c */
/* Makes a child that runs `child` on a copy of the plan and shares the shepherd's memory until it has
 * executed its program or ended; for a child of the shepherd's own user. Returns its pid, which is also in
 * its entry; 0: the caller must fork instead; -1 with errno. */
pid_t launcher_start(const struct plan *p, void (*child)(const struct plan *p));
/* groups.c. Finds the slot of a request's control groups; *ret is NULL if it has none. Returns 0 or an
 * errno. */
int slot_find(struct shepherd *s, const struct shepherd_start *r, const char *dirs, size_t size,
              struct slot **ret);
/* Freezes or thaws the group. Returns false if that is impossible. A group stays frozen after its suspended
 * processes have died. */
bool slot_freeze(const struct slot *sl, bool on);
bool slot_kill(const struct slot *sl); /* sends SIGKILL to all in it; returns whether it had a process */
/* Opens the parent of the groups made here, beneath the first of these directories where that works (NULL:
 * none). Kills what an earlier shepherd has left in them. */
void groups_open(struct shepherd *s, const char *const dirs[], unsigned count);
struct slot *groups_take(struct shepherd *s);          /* takes a group for one child; NULL: there are none */
void groups_give(struct shepherd *s, struct slot *sl); /* returns the group, after the child has ended */
void groups_remove(struct shepherd *s);                /* at exit: removes empty groups, the agent's too */
/* tree.c */
bool tree_reap(
        struct shepherd *s); /* reaps dead children, a limited number at a time; true: there may be more */
void tree_kill(struct shepherd *s, struct child *c, enum shepherd_why why, int64_t grace_ms);
void tree_suspend(struct shepherd *s, struct child *c, bool on);
void tree_signal(const struct child *c,
                 int signal); /* signals its process group; nothing if it does not run */
int64_t tree_timers(struct shepherd *s,
                    int64_t now); /* handles due timers; returns ms until the next, or -1 */
void tree_kill_strays(const char *marker,
                      size_t length); /* kills all processes whose environment has a string that begins so */
/* look.c: finds out which processes were started with a string in their environment. A round of looks takes
 * no longer than one process can block it. */
#define LOOK_MARKER_MAX 256
void look_begin(void);
/* Returns whether the process has a string that begins with `length` bytes of the marker, or (whole) is
 * those. Returns false also if the process is gone, cannot be examined, or blocked an earlier look of the
 * round. */
bool look_for(pid_t pid, const char *marker, size_t length, bool whole);
bool look_end(void);     /* false: the round was blocked, and did not examine every process */
bool look_is(pid_t pid); /* returns whether pid is the shepherd's own process that looks, during a round */
/* table.c */
int table_open(struct shepherd *s);      /* kills what an earlier shepherd left; 0 or -errno */
unsigned table_take(struct shepherd *s); /* TABLE_MAX: full */
void table_give(struct shepherd *s, unsigned entry);
/* begun.c: the file that the agent reads when the shepherd does not answer (shepherd_protocol.h) */
int begun_open(struct shepherd *s); /* 0 or -errno */
/* Writes the id into the file and returns its index there. At most SHEPHERD_BEGUN_MAX ids may be in it. */
uint32_t begun_add(struct shepherd *s, const struct shepherd_id *id);
void begun_remove(struct shepherd *s, uint32_t place); /* does nothing for SHEPHERD_BEGUN_MAX */
/* sandbox.c: used only as root with a map of users. The folder of the sandboxes is the shepherd's own, so
 * that a name in it refers to the same folder from one call to the next. */
int sandbox_open(struct shepherd *s); /* 0 or -errno: the state folder isn't root's alone */
int sandbox_make(struct shepherd *s, const char *path, const struct user *user,
                 bool share); /* 0 or an errno */
char *sandbox_name_of(
        const char *path); /* returns its last component, which the caller frees; NULL: it has none */
void sandbox_remove(struct shepherd *s, const char *name);
/* Empties and removes the sandbox's folder of credentials; used with and without a map of users. */
void sandbox_drop_credentials(const struct shepherd *s, const char *path);
/* users.c */
struct user {
        uid_t uid;
        gid_t gid;
        int group_count;
        gid_t groups[64];
        char *home;
};
/* Finds the user that the owner's jobs run as, in the map of users. Returns false if the map does not allow
 * `user`. */
bool users_find(const struct shepherd *s, const char *owner, const char *user, struct user *ret);
