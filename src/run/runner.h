/* runner: how a queue runs a step of a job.
 *
 * A back end is one struct of functions, struct runner_kind: the process runner starts processes here,
 * through the shepherd; others submit to a batch system. The agent sees only this. Everything is
 * asynchronous: calls queue and return; what happens is told to the observer, on the loop's thread, never
 * from within a call. A task goes
 *
 *      submit ---> RUN_WAITING ---> RUN_RUNNING ---> RUN_ENDED ---forget---> gone
 *                       \               \----------> RUN_LOST  ---forget---> gone
 *                        \---> RUN_FAILED ----------forget---> gone
 *
 * and is known, with its state, until it is forgotten, also across a restart of the agent: after `open` the
 * runner tells each task it still knows (events with `known` set), then that it is ready. Only then may the
 * agent submit. A runner that has lost touch with its tasks tells that it is unreachable; then again known
 * tasks and ready. What it doesn't tell again is gone: the agent treats it as lost.
 *
 * A batch system (batch.h) has its own queue: a task may be RUN_WAITING there for long, and outlives agent
 * and machine. Unreachable means that the system does not answer; its tasks go on. The submission is written
 * down before it is made and carries a name that can be searched for, and a task begins once only, whatever
 * was submitted twice.
 */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "ev/loop.h"
#include "run/task/run_id.h"

enum run_stream_flags {
        RUN_STDOUT_APPEND = 1,
        RUN_STDERR_APPEND = 2,
        RUN_STDERR_IS_STDOUT = 4,
        RUN_MAKE_SANDBOX = 8,    /* the sandbox is made, for `user`, if it isn't there */
        RUN_REMOVE_SANDBOX = 16, /* it is removed at the end, if it is empty then */
        RUN_STDIN_FD = 32,       /* standard input is stdin_fd */
        RUN_SHARE_SANDBOX = 128, /* with RUN_MAKE_SANDBOX: the agent may make and remove files in it, and read
                                    what all may read, but not list it */
        RUN_CREDENTIALS = 256,   /* the sandbox has credentials of the job, which go if its lease ends it */
        RUN_HIDE = 512, /* of a process runner: the parts of containment, as in shepherd_protocol.h */
        RUN_OWN_TMP = 1024,
        RUN_NO_PRIVILEGES = 2048,
        RUN_FILTER = 4096,
        RUN_NO_NETWORK = 8192,
        RUN_CONTAIN_ALL = 16384,
        RUN_GUEST = 32768,    /* of a process runner: beside the attempt's task that runs, and ends with it */
        RUN_TERMINAL = 65536, /* of a process runner: stdin_fd is a terminal, the task's own, and all its
                                 streams */
        RUN_CONTAINER = 64    /* the program is a container's engine: what runs in it is elsewhere, with the
                                 same marker in its environment, and is ended and stopped with it */
};

struct run_word { /* of a job's ad or of a queue's settings, for a batch system */
        const char *name, *value;
};

struct run_rlimit {
        int resource; /* RLIMIT_… */
        uint64_t soft, hard;
};

/* How the program keeps what it has done: see agent/attempt/checkpoint.h. */
struct run_checkpoints {
        bool made, by_signal; /* made: it makes checkpoints, and ends so: */
        int code;             /* with this exit code, or by this signal */
        int signal;           /* that asks for one; 0: none of its own */
        const char *files;    /* names, with commas; "": what would be its outputs */
        bool when_evicted;    /* what it leaves when it is vacated is one, however it ends */
        int kill_signal;      /* that asks it to end; 0: SIGTERM */
        uint64_t vacate_ms;   /* how long it may take then; 0: as the place has it */
};

/* Where the job comes from, for a runner that hands it on to another server. */
struct run_delegation {
        const char *servers;     /* uuids of those that it has passed, this agent's last, parted by blanks */
        const char *owner, *job; /* at the first: name@domain, "7.42" */
        const char *label;       /* of its data: "a,b" */
        const char *path;        /* what its author has fixed of the way behind this queue */
        uint32_t hops_left;      /* it may be handed on so many times, this one included */
        const char *outputs;     /* names that it leaves, with commas; "": none; NULL: every new file */
        bool on_success_only;    /* and only when it has succeeded */
        const char *credentials; /* names of those that it needs, with commas: see `credential` */
        /* Attributes of the job that go along: values are expressions. */
        const struct run_word *attributes;
        size_t attribute_count;
        bool image_program; /* the program is one of the image of the container that it runs in there */
        struct run_checkpoints
                checkpoints; /* for who vacates it there: one that it makes by itself ends it */
};

/* What a job's owner has given it to speak for him. Borrowed. */
struct run_credential {
        const char *name, *type;
        struct str data;
};

/* What to run. Borrowed during submit. Strings may be NULL for "". */
struct run_spec {
        struct run_id id;
        const char *owner, *user; /* name@domain; local user, NULL: as ourselves */
        const char *sandbox;      /* absolute; relative streams are opened beneath it */
        const char *cwd;          /* absolute; NULL: the sandbox */
        const char *stdin_path, *stdout_path,
                *stderr_path; /* absolute, or beneath the sandbox; NULL: /dev/null */
        unsigned flags;
        int stdin_fd;     /* borrowed; with RUN_STDIN_FD */
        const char *path; /* of the program; relative to cwd */
        char *const *argv, *const *envp;
        const struct run_rlimit *rlimits;
        unsigned rlimit_count;          /* at most 8 */
        const char *const *cgroup_dirs; /* NULL behind the last, or NULL */
        uint32_t slot;                  /* told back with each event; UINT32_MAX: none */
        uint64_t walltime_ms;           /* 0: none */
        /* CLOCK_BOOTTIME after which it does not begin, for a runner that has `begun`: RUN_FAILED then, as
         * RUN_TOO_LATE. 0: whenever */
        int64_t begin_by_boot_ms;
        char *const *after; /* for a batch system's script: run when the program is over; or NULL */
        /* what a batch system is to be asked for */
        const char *job; /* "7.42", for people */
        uint64_t cpus_milli, memory_bytes, gpus;
        const struct run_word *words;
        size_t word_count;
        struct run_delegation delegation;
};

enum run_state { RUN_WAITING, RUN_RUNNING, RUN_ENDED, RUN_FAILED, RUN_LOST };
enum run_why { RUN_ITSELF, RUN_KILLED, RUN_WALLTIME, RUN_LEASE_ENDED, RUN_MEMORY };

struct run_event { /* the state of a task */
        struct run_id id;
        enum run_state state;
        bool known; /* told because the runner still had it */
        uint32_t slot;
        int64_t native;      /* pid, or the batch system's number */
        uint64_t started_ms; /* RUN_RUNNING, RUN_ENDED: Unix time */
        /* RUN_ENDED */
        enum run_why why;
        bool signaled;
        int exit_code;     /* or the signal */
        uint64_t ended_ms; /* Unix time */
        uint64_t cpu_user_ms, cpu_system_ms, memory_peak_bytes;
        /* RUN_FAILED */
        int error;        /* errno */
        const char *what; /* what failed: "program", "stdin", "folder", …; static */
        /* RUN_FAILED, RUN_LOST: the system's own words, or NULL; for the time of the call */
        const char *text;
};

struct run_quote { /* the answer to a quote */
        struct run_id id;
        uint64_t begins_ms; /* Unix time at which it would begin, not before the quote was asked for; 0:
                               unknown */
        int error;          /* EINVAL: the system says that it would never run this; else 0 */
        const char *why;    /* then, in the system's words; or NULL */
};

/* What a runner tells. Every call comes from the loop, never from within a verb of the runner, and may call
 * any verb of it. Texts are for the time of the call. */
struct run_observer {
        /* At least one event, in order: those of several tasks together, since they happened at the same
         * time. */
        void (*tasks)(void *arg, const struct run_event *events, size_t count);
        /* A signal has reached nobody, since the task waits at another server; the signal waits with it. Also
         * when the task was told to run before. */
        void (*signal_waits)(void *arg, struct run_id id);
        /* A task that goes on has a checkpoint at another server, which is here now. `files` has two lines
         * for each of its files: where it is beneath the sandbox, and what it shall be there. */
        void (*checkpointed)(void *arg, struct run_id id, const char *files);
        void (*quoted)(void *arg, const struct run_quote *quote);
        /* All tasks that the runner still knows were told; it takes submits. Of the process runner: the parts
         * of containment that there are, and the errno why RUN_HIDE is not among them. */
        void (*ready)(void *arg, uint32_t containment, int hide_error);
        /* Nothing is known of its tasks but that nobody has ended them. `why` is in the system's words, or
         * NULL. */
        void (*unreachable)(void *arg, const char *why);
        /* The runner is there and has its tasks, and does not answer: what it is told meanwhile waits for it.
         * NULL: it answers again. */
        void (*silent)(void *arg, const char *why);
};

#define RUN_TOO_LATE "deadline" /* what RUN_FAILED says of a task that its runner came to too late */

/* Places of one kind behind another server: what they show to jobs, and what they have. Borrowed until the
 * next call. All of it is the other server's word. */
#define RUN_KINDS_MAX 8u
struct run_resource {
        const char *name;
        uint64_t all, idle, node; /* node: of the place with the most */
};
struct run_kind {
        const struct run_word *attributes; /* values are expressions */
        size_t attribute_count;
        const char *requirements; /* of jobs: an expression, or "" */
        uint64_t places;
        uint64_t cpus_milli, idle_cpus_milli, node_cpus_milli;
        uint64_t memory_bytes, idle_memory_bytes, node_memory_bytes;
        uint64_t node_disk_bytes; /* 0: nobody says */
        const struct run_resource *resources;
        size_t resource_count;
};

struct run_capacity {
        bool known;
        uint64_t cpus_milli, memory_bytes;           /* in all */
        uint64_t idle_cpus_milli, idle_memory_bytes; /* free at at_ms */
        uint64_t node_cpus_milli, node_memory_bytes; /* of the largest node: no task can have more */
        uint64_t nodes;
        uint64_t walltime_max_ms; /* of a task that names no part of the system itself: 0: not known;
                                     UINT64_MAX: there is none */
        uint64_t gpus, idle_gpus, node_gpus; /* likewise: in all, free at at_ms, of the node with the most */
        uint64_t at_ms;                      /* Unix time; what was submitted or began later is not counted */
        uint64_t tasks_max;
        const char
                *nothing; /* there are no processors: why, borrowed until the next call; NULL: nobody says */
        const char *server;           /* uuid of the server that jobs are handed on to; NULL: they are not */
        const struct run_kind *kinds; /* of places there, at most RUN_KINDS_MAX */
        size_t kind_count;
        uint64_t kinds_digest; /* of what they show and require; 0: the other server says nothing of kinds */
};

/* Where a task is, for people. */
struct run_where {
        char native[64];  /* what it is called there, as the system writes it; "": nothing yet */
        const char *word; /* the system's or the runner's own for its state; static, or NULL */
        const char
                *said; /* why it waits there, in the system's words, or NULL; borrowed until the next call */
        struct str hops; /* of another server: its own path, JSON; borrowed until the next call */
};

/* A question about what a task prints at another server. */
struct run_output_question {
        uint64_t attempt;   /* there, that the offsets count in; 0: none is known yet */
        uint64_t offset[2]; /* of stdout and stderr */
        uint64_t last;      /* the offsets count from so many bytes before the end; 0: as they are */
        bool wait;          /* a moment, for something new */
};
struct run_output {       /* borrowed for the call */
        bool failed;      /* there was no answer, or none that makes sense */
        uint64_t attempt; /* there; the offsets count anew in each */
        uint64_t offset[2];
        struct str bytes[2]; /* at most 64 KiB each */
        bool over;           /* it prints nothing more */
};
typedef void run_output_fn(void *arg, uint64_t number, const struct run_output *said);

struct runner;

struct user_commands;
struct hidden;
struct runner_config {
        struct loop *loop;
        const char *dir;             /* the agent's state folder, absolute */
        const char *instance;        /* the agent's uuid */
        const char *program;         /* of a helper (the shepherd); NULL: beside ours, then PATH */
        const char *users_path;      /* map of owners to local users; NULL: everything runs as we do */
        unsigned min_uid, agent_uid; /* agent_uid: who we shall be; no job's user */
        /* With users_path: directories beneath which a control group is made for each job, the better one
         * first; NULL: none. */
        const char *cgroups[2];
        const char *const *hidden; /* folders that jobs shall not see, NULL behind the last; or NULL */
        int64_t silence_ms;        /* of the shepherd: after so long RUN_SILENT is told; 0: never */
        /* Where no path that a job names may lead, for what is opened in our own name; NULL: anywhere. Ours
         * for as long as the runner is open. */
        const struct hidden *closed;
        struct user_commands *user_commands; /* with a map: how a job's user runs a command; else NULL */
        const char *queue; /* of a batch system: the agent's name for it, and what the file says */
        const struct run_word *settings;
        size_t setting_count;
        const char *filesystem_domain; /* the agent's */
        const struct run_observer
                *observer; /* borrowed for as long as the runner is open; each call gets arg */
        void *arg;
};

struct runner_kind {
        const char *name;
        bool for_users; /* it can run jobs of several local users */
        int (*open)(const struct runner_config *c, struct runner **ret, struct err *err); /* 0 or -errno */
        void (*close)(struct runner *r, bool kill_all); /* frees it; tasks go on unless kill_all */
        /* Calls gather until flush, which the agent makes at the end of a turn. */
        void (*flush)(struct runner *r);
        void (*submit)(struct runner *r, const struct run_spec *spec); /* an id twice is the same task */
        void (*kill)(struct runner *r, struct run_id id,
                     uint64_t grace_ms);                     /* the whole tree; RUN_ENDED follows */
        void (*suspend)(struct runner *r, struct run_id id); /* a waiting one does not begin until resumed */
        void (*resume)(struct runner *r, struct run_id id);
        /* A waiting task does not begin until it is released, and keeps its place in the system's queue if
         * the system does that; one that has begun, or begins at this moment, goes on as if nothing was said.
         * No event follows. Held twice is held; a kill ends a held one too. */
        void (*hold)(struct runner *r, struct run_id id);
        void (*release)(struct runner *r, struct run_id id);
        /* To the program of a running task: to the process group that it leads, whatever stands between (a
         * script, a batch system, another machine). At most once, and in the order of the calls; within a
         * few seconds. Nothing follows but what the program does; an end by it is RUN_ITSELF. Without effect
         * on what does not run, but for a runner that hands tasks on: what it cannot deliver at once, it
         * delivers when the task runs. `signal` is one of this machine's numbers (signal(7)). SIGSTOP and
         * SIGCONT are suspend and resume. */
        void (*signal)(struct runner *r, struct run_id id, int signal);
        /* When would this begin if it was submitted now? Nothing is submitted, and nothing is in the way of a
         * later submit of the same id. One `quoted` with the spec's id follows, unless the runner is closed
         * first; a system that cannot say, or does not answer, makes it unknown. What the agent's own limits
         * allow is not counted. At most 32 may be open: more are unknown at once. */
        void (*quote)(struct runner *r, const struct run_spec *spec);
        /* Of a runner that is RUN_SILENT: appends the run_ids of all tasks that it has begun and that are not
         * forgotten. One that is not among them has not begun, and does not, if the time in its spec is over
         * by a second, or if another process than we has submitted it. 0; or -errno: nobody can tell. NULL:
         * none is ever silent. */
        int (*begun)(struct runner *r, struct buf *ret);
        void (*status)(struct runner *r, const struct run_id *ids,
                       size_t count);                       /* an event for each, `known` set */
        void (*forget)(struct runner *r, struct run_id id); /* after it ended: it was recorded elsewhere */
        void (*lease)(struct runner *r,
                      int64_t until_boot_ms); /* at that time everything is killed; 0: never */
        void (*capacity)(struct runner *r, struct run_capacity *ret);
        /* What was submitted for it, appended; of one that is forgotten, the last of its job that is still
         * kept. 0, -ENOENT or another -errno; NULL: nothing is submitted. */
        int (*script)(struct runner *r, struct run_id id, struct buf *out);
        /* For a runner that hands tasks on, else NULL, and the agent gives the job its files: contents of a
         * credential that the task's hop names, after its submit, and again when they are new. They are
         * written to no file. */
        void (*credential)(struct runner *r, struct run_id id, const struct run_credential *c);
        /* For a runner that hands tasks on, else NULL, and what a task prints is in its sandbox. Asks the
         * other server what a task prints; fn is called once with this number, unless the runner is closed
         * first. 0; -EAGAIN: that cannot be asked now, but later; -ENOENT: there is no such task. */
        int (*output)(struct runner *r, struct run_id id, const struct run_output_question *q,
                      uint64_t number, run_output_fn *fn, void *arg);
        int (*where)(struct runner *r, struct run_id id,
                     struct run_where *ret); /* 0, or -ENOENT; may be NULL: the agent knows all there is */
};

extern const struct runner_kind runner_process;
#define RUNNER(name) extern const struct runner_kind runner_##name;
#include "run/runners.def"
const struct runner_kind *runner_find(
        const char *name); /* as `runner` in a queue says; NULL: there is none */

/* Every runner begins with its kind, so that calls read runner_submit(r, …). */
struct runner {
        const struct runner_kind *kind;
};
static inline void runner_submit(struct runner *r, const struct run_spec *spec)
{
        r->kind->submit(r, spec);
}
static inline void runner_kill(struct runner *r, struct run_id id, uint64_t grace_ms)
{
        r->kind->kill(r, id, grace_ms);
}
static inline void runner_forget(struct runner *r, struct run_id id)
{
        r->kind->forget(r, id);
}
static inline void runner_signal(struct runner *r, struct run_id id, int signal)
{
        r->kind->signal(r, id, signal);
}
