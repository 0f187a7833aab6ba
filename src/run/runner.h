/* runner: how a queue runs a step of a job.
 *
 * A back end is one struct of functions, struct runner_kind: the process runner starts processes on this
 * machine, through the shepherd; others submit to a batch system or to another server. The agent knows
 * runners by this header only. All calls are asynchronous: they queue and return, and the observer is told of
 * results on the loop's thread, never from within a call. A task goes
 *
 *      submit ---> RUN_WAITING ---> RUN_RUNNING ---> RUN_ENDED ---forget---> gone
 *                       \               \----------> RUN_LOST  ---forget---> gone
 *                        \---> RUN_FAILED ----------forget---> gone
 *
 * and stays known, with its state, until it is forgotten, also across a restart of the agent: after `open`
 * the runner reports each task that it still knows (events with `known` set), and then that it is ready. The
 * agent may submit only after that. A runner that has lost touch with its tasks reports that it is
 * unreachable, later the known tasks again, and ready. The agent treats a task that is not reported again as
 * lost.
 *
 * A batch system (batch.h) has a queue of its own: a task may be RUN_WAITING there for long, and outlives
 * agent and machine. Unreachable means that the system does not answer; its tasks go on. A submission is
 * recorded before it is made and carries a name that can be searched for, and a task begins once only, even
 * if it was submitted twice.
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
        RUN_MAKE_SANDBOX = 8,    /* make the sandbox, for `user`, if it does not exist */
        RUN_REMOVE_SANDBOX = 16, /* remove the sandbox at the end, if it is empty then */
        RUN_STDIN_FD = 32,       /* standard input is stdin_fd */
        RUN_SHARE_SANDBOX = 128, /* with RUN_MAKE_SANDBOX: the agent may make and remove files in it, and read
                                    what all may read, but not list it */
        RUN_CREDENTIALS = 256, /* the sandbox has credentials, which are removed if the lease ends the job */
        RUN_HIDE = 512, /* this and the next five: containment by a process runner, see shepherd_protocol.h */
        RUN_OWN_TMP = 1024,
        RUN_NO_PRIVILEGES = 2048,
        RUN_FILTER = 4096,
        RUN_NO_NETWORK = 8192,
        RUN_CONTAIN_ALL = 16384,
        RUN_GUEST = 32768, /* process runner: the task runs beside the attempt's own task, and ends with it */
        RUN_TERMINAL =
                65536, /* process runner: stdin_fd is a terminal of the task's own, and is all its streams */
        RUN_CONTAINER = 64 /* the program is a container engine: the container's processes are elsewhere,
                              carry the same marker in their environment, and are ended and stopped with it */
};

struct run_word { /* an attribute of a job's ad, or a setting of a queue, for a batch system */
        const char *name, *value;
};

struct run_rlimit {
        int resource; /* RLIMIT_… */
        uint64_t soft, hard;
};

/* Describes how a program makes checkpoints, see agent/attempt/checkpoint.h. */
struct run_checkpoints {
        bool made, by_signal; /* made: the program makes checkpoints, and then ends with `code`; by_signal: by
                                 it */
        int code;             /* exit code, or number of the signal */
        int signal;           /* signal that asks for a checkpoint; 0: none of its own */
        const char *files;    /* names of the checkpoint's files, comma-separated; "": the outputs */
        bool when_evicted;  /* what the program leaves when it is vacated is a checkpoint, however it ends */
        int kill_signal;    /* signal that asks it to end; 0: SIGTERM */
        uint64_t vacate_ms; /* time that it has to end after that; 0: as the place is configured */
};

/* Origin of the job, for a runner that delegates it to another server. */
struct run_delegation {
        const char *servers; /* uuids of the servers that it has passed, this agent's last, blanks between */
        const char *owner, *job; /* owner and id at the first server: name@domain, "7.42" */
        const char *label;       /* label of its data: "a,b" */
        const char *path;        /* the part of the path behind this queue that its author has fixed */
        uint32_t hops_left;      /* hops that are still allowed, this one included */
        const char *outputs;     /* names of its outputs, comma-separated; "": none; NULL: every new file */
        bool on_success_only;    /* outputs come back only when the job has succeeded */
        /* Names of the credentials that it needs, comma-separated: see `credential`. */
        const char *credentials;
        /* Attributes of the job that travel with it; values are expressions. */
        const struct run_word *attributes;
        size_t attribute_count;
        bool image_program; /* the program is part of the container image that it runs in there */
        struct run_checkpoints checkpoints; /* for a vacate at the other server; a checkpoint that the job
                                               makes by itself ends it */
};

/* A credential that a job's owner has given to it. Borrowed. */
struct run_credential {
        const char *name, *type;
        struct str data;
};

/* A step to run. Borrowed during submit. Strings may be NULL for "". */
struct run_spec {
        struct run_id id;
        const char *owner, *user; /* name@domain; local user, NULL: the agent's own */
        const char *sandbox;      /* absolute; relative streams are opened beneath it */
        const char *cwd;          /* absolute; NULL: the sandbox */
        /* Absolute, or beneath the sandbox; NULL: /dev/null. */
        const char *stdin_path, *stdout_path, *stderr_path;
        unsigned flags;
        int stdin_fd;     /* borrowed; with RUN_STDIN_FD */
        const char *path; /* path of the program; relative to cwd */
        char *const *argv, *const *envp;
        const struct run_rlimit *rlimits;
        unsigned rlimit_count;          /* at most 8 */
        const char *const *cgroup_dirs; /* NULL behind the last, or NULL */
        uint32_t slot;                  /* repeated in each event; UINT32_MAX: none */
        uint64_t walltime_ms;           /* 0: no limit */
        /* Time of CLOCK_BOOTTIME after which the task does not begin any more, for a runner that has `begun`;
         * the task is RUN_FAILED with RUN_TOO_LATE then. 0: no limit. */
        int64_t begin_by_boot_ms;
        char *const *after; /* command that a batch system's script runs when the program is over; or NULL */
        /* resources to ask a batch system for */
        const char *job; /* "7.42", for people */
        uint64_t cpus_milli, memory_bytes, gpus;
        const struct run_word *words;
        size_t word_count;
        const char *reservation; /* the batch system's name of the reservation that it runs in; NULL: none */
        struct run_delegation delegation;
};

/* Room of a queue that is reserved for certain jobs, or for maintenance, from start_ms to end_ms (Unix time).
 */
struct run_reservation {
        uint64_t id;
        int64_t start_ms, end_ms;
        uint64_t cpus;
        bool maintenance; /* no job runs in the queue then; cpus is 0 */
};

enum run_state { RUN_WAITING, RUN_RUNNING, RUN_ENDED, RUN_FAILED, RUN_LOST };
enum run_why { RUN_ITSELF, RUN_KILLED, RUN_WALLTIME, RUN_LEASE_ENDED, RUN_MEMORY };

struct run_event { /* the state of a task */
        struct run_id id;
        enum run_state state;
        bool known; /* reported after open or a loss of contact, not because the state has changed */
        uint32_t slot;
        int64_t native;      /* pid, or the batch system's number */
        uint64_t started_ms; /* RUN_RUNNING, RUN_ENDED: Unix time */
        /* RUN_ENDED */
        enum run_why why;
        bool signaled;
        int exit_code;     /* or the signal */
        uint64_t ended_ms; /* Unix time */
        uint64_t cpu_user_ms, cpu_system_ms, memory_peak_bytes;
        uint64_t energy_uj; /* as the system says; 0: it does not */
        /* RUN_FAILED */
        int error;        /* errno */
        const char *what; /* the part that failed: "program", "stdin", "folder", …; static */
        /* RUN_FAILED, RUN_LOST: the system's own words, or NULL; valid during the call */
        const char *text;
};

struct run_quote { /* the answer to a quote */
        struct run_id id;
        uint64_t begins_ms; /* Unix time at which the task would begin, not before the time of the question;
                               0: unknown */
        int error;          /* EINVAL: the system says that it would never run this; else 0 */
        const char *why;    /* the system's reason for EINVAL, or NULL */
};

/* Callbacks of a runner. Every call comes from the loop, never from within a verb of the runner, and may call
 * any verb of it. Texts are valid during the call. */
struct run_observer {
        /* States of tasks have changed: at least one event, in order; changes of several tasks that happened
         * at the same time come together. */
        void (*tasks)(void *arg, const struct run_event *events, size_t count);
        /* The task of a signal waits at another server, and the signal waits with it. Also called when the
         * task was reported as running before. */
        void (*signal_waits)(void *arg, struct run_id id);
        /* A checkpoint that a running task has made at another server has been brought here. `files` has two
         * lines for each file: its place beneath the sandbox, and its name in the checkpoint. */
        void (*checkpointed)(void *arg, struct run_id id, const char *files);
        void (*quoted)(void *arg, const struct run_quote *quote);
        /* All tasks that the runner still knows have been reported, and it takes submits. A process runner
         * also says which parts of containment it has, and the errno for which RUN_HIDE is missing. */
        void (*ready)(void *arg, uint32_t containment, int hide_error);
        /* Contact with the tasks is lost; they have not been ended. `why` is in the system's words, or NULL.
         */
        void (*unreachable)(void *arg, const char *why);
        /* The runner exists and has its tasks but does not answer; calls wait for it. NULL: it answers again.
         */
        void (*silent)(void *arg, const char *why);
};

#define RUN_TOO_LATE "deadline" /* `what` of RUN_FAILED for a task that could not begin in time */

/* Places of one kind behind another server: the attributes that they show to jobs, and their sizes. Borrowed
 * until the next call. Every value is what the other server claims. */
#define RUN_KINDS_MAX 8u
struct run_resource {
        const char *name;
        uint64_t all, idle, node; /* node: units of the place that has most */
};
struct run_kind {
        const struct run_word *attributes; /* values are expressions */
        size_t attribute_count;
        const char *requirements; /* requirements of the places on jobs: an expression, or "" */
        uint64_t places;
        uint64_t cpus_milli, idle_cpus_milli, node_cpus_milli;
        uint64_t memory_bytes, idle_memory_bytes, node_memory_bytes;
        uint64_t node_disk_bytes; /* 0: not known */
        const struct run_resource *resources;
        size_t resource_count;
};

struct run_capacity {
        bool known;
        uint64_t cpus_milli, memory_bytes;           /* total */
        uint64_t idle_cpus_milli, idle_memory_bytes; /* free at at_ms */
        /* Size of the largest node, the most that a task can have on one node. */
        uint64_t node_cpus_milli, node_memory_bytes;
        uint64_t nodes;
        char unavailable[160];    /* nodes that take no jobs, in the system's words: "2 drained, 1 down*" */
        uint64_t task_nodes;      /* the most that one task may have at the same time; 0: as 1 */
        uint64_t walltime_max_ms; /* longest walltime of a task that names no partition itself; 0: not known;
                                     UINT64_MAX: no limit */
        uint64_t gpus, idle_gpus, node_gpus; /* total, free at at_ms, of the node with most */
        uint64_t at_ms; /* Unix time of these values; later submits and starts are not counted */
        uint64_t tasks_max;
        const char *nothing; /* why there are no processors, borrowed until the next call; NULL: no reason is
                                known */
        const char *server;  /* uuid of the server that jobs are delegated to; NULL: they are not */
        const struct run_kind *kinds; /* kinds of places there, at most RUN_KINDS_MAX */
        size_t kind_count;
        uint64_t kinds_digest; /* digest of the kinds' attributes and requirements; 0: the server tells no
                                  kinds */
};

/* Location of a task, for people. */
struct run_where {
        char native[64];  /* the system's own id of the task; "": none yet */
        const char *word; /* the state, in the words of the system or the runner; static, or NULL */
        /* Reason why the task waits, in the system's words, or NULL; borrowed until the next call. */
        const char *said;
        struct str hops; /* path behind another server, JSON; borrowed until the next call */
};

/* A question about what a task prints at another server. */
struct run_output_question {
        uint64_t attempt;   /* attempt there to which the offsets belong; 0: none is known yet */
        uint64_t offset[2]; /* into stdout and stderr */
        uint64_t last;      /* if not 0, offsets begin this many bytes before the end instead */
        bool wait;          /* wait a moment for new output */
};
struct run_output {       /* borrowed during the call */
        bool failed;      /* no answer came, or none that makes sense */
        uint64_t attempt; /* attempt there; offsets begin at 0 in each */
        uint64_t offset[2];
        struct str bytes[2]; /* at most 64 KiB each */
        bool over;           /* the task prints nothing more */
};
typedef void run_output_fn(void *arg, uint64_t number, const struct run_output *said);

struct runner;

struct user_commands;
struct hidden;
struct runner_config {
        struct loop *loop;
        const char *dir;        /* the agent's state folder, absolute */
        const char *instance;   /* the agent's uuid */
        const char *program;    /* path of the shepherd; NULL: beside this program, then PATH */
        const char *users_path; /* map of owners to local users; NULL: all jobs run as the agent's user */
        unsigned min_uid, agent_uid; /* agent_uid: the user that the agent becomes, which is no job's */
        /* With users_path: directories beneath which a control group is made for each job, the preferred one
         * first; NULL: none. */
        const char *cgroups[2];
        const char *const *hidden; /* folders that jobs must not see, NULL behind the last; or NULL */
        int64_t silence_ms;        /* silence of the shepherd after which `silent` is called; 0: never */
        /* Folders that no path named by a job may lead into, for files opened with the agent's rights; NULL:
         * no restriction. Borrowed for as long as the runner is open. */
        const struct hidden *closed;
        struct user_commands *user_commands; /* with a map: runs commands as a job's user; else NULL */
        const char *queue; /* batch system: the agent's name for the queue, and its settings */
        const struct run_word *settings;
        size_t setting_count;
        const char *filesystem_domain; /* the agent's */
        /* Borrowed for as long as the runner is open; each callback gets arg. */
        const struct run_observer *observer;
        void *arg;
};

struct runner_kind {
        const char *name;
        bool for_users; /* the runner can run jobs of several local users */
        int (*open)(const struct runner_config *c, struct runner **ret, struct err *err); /* 0 or -errno */
        void (*close)(struct runner *r, bool kill_all); /* frees the runner; tasks go on unless kill_all */
        /* Carries out the calls made since the last flush. The agent calls it at the end of a turn. */
        void (*flush)(struct runner *r);
        /* Begins a task. A second submit of an id is ignored: it is the same task. */
        void (*submit)(struct runner *r, const struct run_spec *spec);
        /* Ends the task's whole process tree: SIGTERM, and SIGKILL after grace_ms. RUN_ENDED follows. */
        void (*kill)(struct runner *r, struct run_id id, uint64_t grace_ms);
        void (*suspend)(struct runner *r, struct run_id id); /* a waiting task does not begin until resumed */
        void (*resume)(struct runner *r, struct run_id id);
        /* Keeps a waiting task from beginning until it is released; it keeps its place in the system's queue
         * where the system supports that. A task that has begun, or begins at this moment, is not affected.
         * No event follows. Holding a held task changes nothing; kill ends a held task, too. */
        void (*hold)(struct runner *r, struct run_id id);
        void (*release)(struct runner *r, struct run_id id);
        /* Sends a signal to the process group that the program of a running task leads, through whatever lies
         * between (a script, a batch system, another machine): at most once, in the order of the calls,
         * within a few seconds. No event follows but what the program does; an end by the signal is
         * RUN_ITSELF. A task that does not run is not affected; only a runner that delegates keeps the signal
         * until the task runs. `signal` is one of this machine's numbers (signal(7)). SIGSTOP and SIGCONT are
         * suspend and resume. */
        void (*signal)(struct runner *r, struct run_id id, int signal);
        /* Asks when the task would begin if it were submitted now. Nothing is submitted, and a later submit
         * of the same id is possible. One `quoted` with the spec's id follows, unless the runner is closed
         * first; a system that cannot say, or does not answer, makes it unknown. The agent's own limits are
         * not counted. At most 32 questions may be open; the answer to a further one is unknown at once. */
        void (*quote)(struct runner *r, const struct run_spec *spec);
        /* For a runner that is silent: appends the run_ids of all tasks that it has begun and that are not
         * forgotten. A task that is not among them has not begun, and will not if begin_by_boot_ms is over by
         * a second, or if another process than this one has submitted it. 0; or -errno: that cannot be told.
         * NULL: runners of this kind are never silent. */
        int (*begun)(struct runner *r, struct buf *ret);
        void (*status)(struct runner *r, const struct run_id *ids,
                       size_t count);                       /* an event for each follows, with `known` set */
        void (*forget)(struct runner *r, struct run_id id); /* after its end was recorded by the agent */
        void (*lease)(struct runner *r,
                      int64_t until_boot_ms); /* time at which all tasks are killed; 0: never */
        void (*capacity)(struct runner *r, struct run_capacity *ret);
        /* Appends what was submitted for the task; for a forgotten one, the last script of its job that is
         * still kept. 0, -ENOENT or another -errno; NULL: runners of this kind submit nothing. */
        int (*script)(struct runner *r, struct run_id id, struct buf *out);
        /* For a runner that delegates; else NULL, and the agent writes the job's credentials to files. Gives
         * the contents of a credential that the task's delegation names, after its submit and whenever they
         * change. They are written to no file. */
        void (*credential)(struct runner *r, struct run_id id, const struct run_credential *c);
        /* For a runner that delegates; else NULL, and what a task prints is in its sandbox. Asks the other
         * server what a task prints; fn is called once with this number, unless the runner is closed first.
         * 0; -EAGAIN: it cannot be asked now, but later; -ENOENT: there is no such task. */
        int (*output)(struct runner *r, struct run_id id, const struct run_output_question *q,
                      uint64_t number, run_output_fn *fn, void *arg);
        /* Tells all reservations of the queue: others that were told before are over. NULL: runners of this
         * kind pass none on. */
        void (*reserve)(struct runner *r, const struct run_reservation *all, size_t count);
        int (*where)(struct runner *r, struct run_id id,
                     struct run_where *ret); /* 0, or -ENOENT; NULL: the agent itself knows all there is */
};

extern const struct runner_kind runner_process;
#define RUNNER(name) extern const struct runner_kind runner_##name;
#include "run/runners.def"
/* Returns the kind with the name that a queue's setting `runner` has; NULL: unknown. */
const struct runner_kind *runner_find(const char *name);

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
