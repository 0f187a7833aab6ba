/* shepherd: owns the running children of one agent, so that the agent may be killed and started again.
 *
 * Uses the C library only. One loop, whose thread has all state; launchers are threads that make children,
 * and wait with them. Files: main (options, lock, socket), serve (the agent's messages), start (a request for
 * a child), child (its way to its program), launcher (making it), containment (what is put around it), tree
 * (killing all that a child left), look (which processes are a job's), groups (control groups), table (pids
 * on disk, for the next shepherd), begun (what was begun, for the agent), users (whom may a job become),
 * sandbox (its folder), world (clock and log).
 *
 * Its agent may be of another user, and is not believed then: the table of what it may ask for is in
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

#define TABLE_MAX    8192 /* children that run at once */
#define BUCKETS      256  /* more would be more pages that are copied for each job */
#define SLOTS_MAX    4096
#define CHILDREN_MAX SHEPHERD_BEGUN_MAX /* with those that ended and that the agent has not forgotten */
#define LINGER_MS    5000               /* without agent and children */
#define START_MAX_MS 60000

enum child_state { CHILD_RUNNING, CHILD_ENDING, CHILD_DONE };

/* In an id's step: it is no job's, but the agent's own. */
#define SHEPHERD_NO_JOBS 0x80000000u

struct child {
        struct child *id_next, *pid_next;   /* hash chains */
        struct child *run_next, **run_link; /* the list of those that are not DONE */
        struct child *dirty_next;           /* to be told to the agent */
        bool dirty, suspended, failed, container;
        bool stuck; /* it was killed on the way to its program */
        bool guest; /* SHEPHERD_GUEST */
        enum child_state state;
        struct shepherd_child tell; /* as it is told */
        struct slot *group;         /* its own, of ours; NULL: the agent's, or none */
        unsigned entry;             /* in the table */
        uint32_t begun;             /* its place in the file of what was begun; SHEPHERD_BEGUN_MAX: none */
        char *remove;               /* the sandbox to remove at its end, or NULL */
        char *secrets;              /* the sandbox, if it has credentials; or NULL */
        char *marker;               /* SHEPHERD_MARKER and value, or NULL */
        int64_t start_by; /* when it should be in its program; 0: it is, or that was not looked at */
        int64_t kill_at, ending_since, again_at, walltime_at; /* CLOCK_BOOTTIME ms; 0: never */
};

/* The descriptors of one control group, kept while the slot's directories are the same. */
struct slot {
        struct slot *idle_next;
        char name[16]; /* of one of our own */
        char *dirs;    /* the strings of the request, count of them; NULL: it is our own */
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
        int jobs;                          /* where we make sandboxes for other users; -1: nowhere */
        int passed;                        /* came with the message that is read; -1: nothing */
        uid_t agent_uid;                   /* may connect, and is no job's user; ours: nobody else */
        bool asked;                        /* the agent has said HELLO, and is not answered yet */
        bool greeted;                      /* it was answered */
        bool pinged;                       /* and has asked whether we answer */
        bool listing;                      /* LISTED is to be said once list_left of what is dirty is told */
        size_t list_left;
        int groups; /* the directory of our own control groups; -1: there are none */
        struct slot *idle_groups;
        bool quit;
        uid_t uid;
        gid_t gid;
        const char *instance;
        const char *users_path; /* NULL: children run as we do */
        uid_t min_uid;
        int64_t start_max_ms; /* from the fork to the program */
        struct table *table;
        struct shepherd_begun *begun;
        struct containment *containment;
        int no_view; /* errno: why a job cannot be kept from Drover's folders; 0: it can */
        struct child *by_id[BUCKETS], *by_pid[BUCKETS];
        struct child *running;
        struct child *dirty_first, **dirty_last;
        int64_t tell_at; /* boot ms: what is dirty is told then at the latest; 0: at once */
        size_t child_count, running_count;
        struct slot *slots[SLOTS_MAX];
        int64_t lease_until; /* boot ms; 0: none */
        int64_t start_by;    /* of the START that comes next: boot ms; 0: whenever */
        int64_t idle_since;
        int64_t look_at, looked_ms; /* at orphans of containers: boot ms; look_at 0: there are no new ones */
        char *message;              /* room for one batch */
};

/* world.c */
int64_t boot_ms(void);
int64_t wall_ms(void);
void *must(void *p); /* p, or abort */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* serve.c */
void serve_accept(struct shepherd *s);
void serve_agent(struct shepherd *s); /* the socket is readable */
/* The agent's messages are read until the lease is one that has not ended, or none is left: after a stop of
 * this process renewals wait in the socket, and only an agent that is silent lets its lease end. */
void serve_renewals(struct shepherd *s);
void serve_flush(struct shepherd *s);       /* tells what is dirty; what the socket does not take stays so */
bool serve_waits(const struct shepherd *s); /* there is something to tell now */
/* When there will be, unless something happens before: boot ms; INT64_MAX: never. */
int64_t serve_time(const struct shepherd *s);
void serve_dirty(struct shepherd *s, struct child *c);
/* A child that has begun is told a little later: many have ended by then, and are told once. */
void serve_begun(struct shepherd *s, struct child *c);
/* Are they of the same attempt? */
bool child_is_beside(const struct child *c, const struct shepherd_id *id);
struct child *child_by_id(struct shepherd *s, const struct shepherd_id *id);
struct child *child_by_pid(struct shepherd *s, pid_t pid);
void child_done(struct shepherd *s, struct child *c); /* no process of it is left */
/* A batch of records, as it came; aligned to 8 bytes. False: it is malformed, and what is before that was
 * done. */
bool serve_batch(struct shepherd *s, const char *p, size_t n);
/* start.c: reads and checks the strings of a request; a bad one makes a FAILED child */
void start_child(struct shepherd *s, const struct shepherd_start *r, const char *strings, size_t size);
/* child.c. A request that was checked; what it points to is borrowed until there is a child, except the
 * entry, which is the child's until it has ended. */
struct plan {
        const struct shepherd_start *r;
        struct table_entry *entry;
        const struct user *user;
        struct containment_job contained;
        pid_t parent;
        int passed; /* its standard input, with SHEPHERD_STDIN_FD */
        unsigned group_count;
        int groups[SHEPHERD_CGROUPS_MAX]; /* cgroup.procs of the groups that it enters */
        const char *sandbox, *cwd, *in, *out, *err, *path;
        char *const *argv, *const *envp;
};
/* Returns the child's pid, or -1 with errno. The child does not come back from it. */
pid_t child_start(const struct plan *p);
/* launcher.c */
/* A child that runs `child` on a copy of the plan and shares our memory until it is in its program, or has
 * ended: for one that has the same user as we. Its pid, which is in its entry as well; 0: it must be
 * forked; -1 with errno. */
pid_t launcher_start(const struct plan *p, void (*child)(const struct plan *p));
/* groups.c. Of a request's control groups, 0 or an errno; *ret NULL when it has none. */
int slot_find(struct shepherd *s, const struct shepherd_start *r, const char *dirs, size_t size,
              struct slot **ret);
/* False: it cannot be. A group stays frozen when what was suspended in it has died. */
bool slot_freeze(const struct slot *sl, bool on);
bool slot_kill(const struct slot *sl); /* SIGKILL to all in it; whether anything was */
/* Our own groups, beneath the first of these directories (NULL: none) where that works: kills what an earlier
 * shepherd has left in them. */
void groups_open(struct shepherd *s, const char *const dirs[], unsigned count);
struct slot *groups_take(struct shepherd *s);          /* for one child; NULL: there are none */
void groups_give(struct shepherd *s, struct slot *sl); /* the child has ended */
void groups_remove(struct shepherd *s);                /* at the end: those that are empty, the agent's too */
/* tree.c */
bool tree_reap(struct shepherd *s); /* what has died, but not without end: true if there may be more */
void tree_kill(struct shepherd *s, struct child *c, enum shepherd_why why, int64_t grace_ms);
void tree_suspend(struct shepherd *s, struct child *c, bool on);
void tree_signal(const struct child *c, int signal);  /* to its process group; nothing if it doesn't run */
int64_t tree_timers(struct shepherd *s, int64_t now); /* acts on what is due; ms until the next, or -1 */
void tree_kill_strays(const char *marker,
                      size_t length); /* any process whose environment has a string that begins so */
/* look.c: which processes were started with a string in their environment. A round of looks takes no longer
 * than one process can keep it waiting. */
#define LOOK_MARKER_MAX 256
void look_begin(void);
/* Has it a string that begins with `length` bytes of the marker, or is those? False, too: it is not there,
 * cannot be looked at, or the round was held up before. */
bool look_for(pid_t pid, const char *marker, size_t length, bool whole);
bool look_end(void);     /* false: the round was held up, and did not look at all that it was asked for */
bool look_is(pid_t pid); /* our process that looks, while a round lasts */
/* table.c */
int table_open(struct shepherd *s);      /* kills what the last shepherd left; 0 or -errno */
unsigned table_take(struct shepherd *s); /* TABLE_MAX: full */
void table_give(struct shepherd *s, unsigned entry);
/* begun.c: what the agent reads when we do not answer (shepherd_protocol.h) */
int begun_open(struct shepherd *s); /* 0 or -errno */
/* The id is in the file when this returns. Its place there: fewer than SHEPHERD_BEGUN_MAX may be. */
uint32_t begun_add(struct shepherd *s, const struct shepherd_id *id);
void begun_remove(struct shepherd *s, uint32_t place); /* SHEPHERD_BEGUN_MAX is none, and is fine */
/* sandbox.c: only as root with a map of users. The folder that holds the sandboxes is ours, so that a name in
 * it means the same from one call to the next. */
int sandbox_open(struct shepherd *s); /* 0 or -errno: the state folder isn't root's alone */
int sandbox_make(struct shepherd *s, const char *path, const struct user *user,
                 bool share);            /* 0 or an errno */
char *sandbox_name_of(const char *path); /* its last component, the caller's; NULL: it has none */
void sandbox_remove(struct shepherd *s, const char *name);
/* With or without such a map: the sandbox's folder of credentials is emptied and removed. */
void sandbox_drop_credentials(const struct shepherd *s, const char *path);
/* users.c */
struct user {
        uid_t uid;
        gid_t gid;
        int group_count;
        gid_t groups[64];
        char *home;
};
/* Whom the owner's jobs run as, by the file of maps; false when the file doesn't say `user`, or it may not
 * be. */
bool users_find(const struct shepherd *s, const char *owner, const char *user, struct user *ret);
