/* attempt: one attempt of one job at this place, and the template that it shares with others of its request.
 *
 * The attempt's life (attempt/life.c):
 *
 *   assigned -> WAITING -> STAGING -> RUNNING (step by step) -> DELIVERING -> DONE -> acknowledged, gone
 *                  |          |           |                         |          ^
 *                  +----------+-----------+-------------------------+----------+   kill, failure, loss
 *
 * WAITING: accepted and written to the journal; for room, or for its set's Go. STAGING: inputs are fetched
 * and copied. RUNNING: the runner has a step of it (or is told in this turn). DELIVERING: no process is left;
 * outputs are copied. DONE: the result is in the journal, and is sent until the server has it.
 */
#pragma once
#include <sys/stat.h>

#include "agent/config/users.h"
#include "agent/model/agent.h"
#include "agent/model/job_template.h"
#include "agent/model/queue.h"

#define ATTEMPT_MAGIC 0x41545450u
#define STEPS_MAX     64
/* In a run_id's step: the task is a stage's, a mover's or a command's of the agent itself, not a job's. */
#define STEP_NO_JOBS 0x80000000u

enum hold_code {
        HOLD_CREDENTIAL = 4,
        HOLD_NOT_STARTED = 6,
        HOLD_OUTPUT = 12,
        HOLD_INPUT = 13,
        HOLD_MEMORY = 34,
        HOLD_IMAGE = 35,
        HOLD_WALLTIME = 47
};

/* What comes before it runs, in STAGING (attempt/staging.c):
 *
 *   CREDENTIALS -> IMAGES -> INPUTS -> ENVIRONMENT -> COPYING -> PLACING -> RUNNING
 *                     \-------- it needs no files --------------^
 *
 * CREDENTIALS: the server sends them. IMAGES: the engine fetches them. INPUTS: they come into the cache, and
 * are pinned. ENVIRONMENT: it is made of a file. COPYING: inputs go into the sandbox. PLACING: the files of
 * its credentials are written there. Each waits until a part tells news->stage or news->staged, and any of
 * them may fail.
 */
enum staging_state {
        STAGING_CREDENTIALS,
        STAGING_IMAGES,
        STAGING_INPUTS,
        STAGING_ENVIRONMENT,
        STAGING_COPYING,
        STAGING_PLACING,
        STAGING_STATES
};

/* How it was told to end (attempt/kill.c):
 *
 *   NONE -> VACATING -> ABANDONED      VACATING: its program was asked by a signal, and has until at_ms
 *      \--> KILLED ------^             KILLED: its program is ended with the grace of a kill
 *       \----------------^             ABANDONED: nothing of it is delivered or told
 *
 * One that is killed while it is vacated goes on being vacated: what it leaves is its checkpoint.
 */
enum kill_state { KILL_NONE, KILL_VACATING, KILL_KILLED, KILL_ABANDONED, KILL_STATES };

struct attempt_kill {
        enum kill_state state;
        int64_t at_ms;            /* boot clock; 0: its time has not begun, or is over */
        bool nobody_hears;        /* VACATING: its program does not run where it was handed on to */
        const char *vacate_later; /* why, once its runner has told of it; NULL: nobody wants it */
};

/* Its checkpoints (attempt/checkpoint.c), while it is RUNNING:
 *
 *   NONE, UNACKED -> SAVING ---> UNACKED -> NONE        SAVING: its step has ended, its files go to the
 * server
 *        \--------> CARRYING ----^                      CARRYING: of one from another server; its step goes
 * on
 *
 * From SAVING and CARRYING it is NONE again when nothing could be kept. UNACKED: the server was told, and has
 * not said that it has it.
 */
enum checkpoint_state {
        CHECKPOINT_NONE,
        CHECKPOINT_SAVING,
        CHECKPOINT_CARRYING,
        CHECKPOINT_UNACKED,
        CHECKPOINT_STATES
};

struct attempt_checkpoint {
        enum checkpoint_state state;
        uint32_t round;            /* how many were made of this step */
        bool in_result;            /* the result's outputs are one */
        struct spool_ref *restore; /* files that it goes on from */
        size_t restore_count;
};

/* The numbers are the wire's. */
enum outcome {
        OUTCOME_EXITED,
        OUTCOME_NOT_STARTED,
        OUTCOME_STAGING_FAILED,
        OUTCOME_LIMIT_EXCEEDED,
        OUTCOME_KILLED,
        OUTCOME_LOST
};

struct step_result {
        bool signaled;
        int32_t exit_code; /* or the signal's number */
        uint64_t started_ms, ended_ms;
};

struct output_ref {
        char *name;
        unsigned char sha256[32];
        uint64_t size;
        uint32_t mode;
        uint64_t at; /* in the file that is uploaded from, where it is one for all */
};

struct job_result {
        enum outcome outcome;
        bool set; /* outcome and reason: the first stay */
        unsigned step_count;
        struct step_result steps[STEPS_MAX];
        uint64_t started_ms, ended_ms, cpu_user_ms, cpu_system_ms, memory_peak_bytes, bytes_in, bytes_out;
        uint32_t hold_code;
        int32_t hold_subcode;
        char *reason;
        struct output_ref *outputs;
        size_t output_count, output_cap;
        struct stream_tail {
                char *bytes; /* the last ones; NULL: none, or not looked at yet */
                size_t count;
                uint64_t size; /* of the whole stream */
        } tails[2];            /* of stdout and stderr */
};

struct attempt_fetches { /* transfer/inputs.c's: what it needs from elsewhere */
        bool wanted;     /* its inputs were asked for */
        unsigned waits;  /* fetches that it waits for */
        struct {         /* of those, as inputs_look saw them */
                const struct fetch *one;
                uint64_t bytes, bytes_all;
                bool all_known; /* bytes_all is the sum of all */
        } seen;
        struct map *pins; /* what it has of the cache while it is staged, struct cached by how the job names
                             it: a URL; or of what was shipped, "sha256:" and its checksum; NULL: nothing */
        size_t url_count; /* that were asked for */
};

struct attempt_environment {        /* environments.c's */
        struct environment *used;   /* that its program runs in; NULL: none */
        bool waits;                 /* for one to be made */
        struct environment *making; /* and that is under way, for it and maybe others; or NULL */
};

struct attempt_container {     /* the container part's */
        struct pull *pull;     /* an image that is being fetched for it, or NULL */
        unsigned imaged;       /* steps whose images were fetched although they were here */
        struct ending *ending; /* its container is over, and is being removed; or NULL */
        bool over;             /* that was done, for this step */
        bool out_of_memory;    /* its engine says so */
};

struct template
{ /* one part of a request */
        struct job_template *m;
        struct agent *a;
        uint64_t bytes; /* counted in a->held_bytes */
        unsigned refs;
        bool journaled;
        bool same_domain;        /* paths of the submitter mean the same here */
        bool own_cwd;            /* the job's folder is its sandbox */
        struct users_entry user; /* with `users`: whom it runs as, if not_mapped is NULL */
        char *not_mapped;        /* why it does not run here */
};

struct outputs;
/* What a part that works for attempts tells of them. There is one set of functions, agent->news, which the
 * life of attempts gives; all of them may end and free the attempt. */
struct attempt_news {
        /* Something that its staging waited for is here: staging goes on with what comes next. */
        void (*stage)(struct attempt *at);
        /* Its staging has ended: its files are in the sandbox; or (hold_code) cannot be, and why. */
        void (*staged)(struct attempt *at, int hold_code, const char *reason);
        /* Its inputs or its image do not come, for no fault of the job's: it goes back to the server's queue.
         */
        void (*give_back)(struct attempt *at, const char *reason);
        /* Its outputs, or the files of its checkpoint, are out of the sandbox, and these have to be sent:
         * what they have is taken. */
        void (*outputs)(struct attempt *at, struct outputs *outputs);
        /* Those that were to be brought or sent are where they belong; or (hold_code) cannot be. */
        void (*delivered)(struct attempt *at, int hold_code, const char *reason);
        /* The end of what it has printed at another server is here, or cannot be had. */
        void (*printed)(struct attempt *at);
        /* A credential that it holds is here, or has been replaced. */
        void (*credential)(struct attempt *at);
        /* The container of its step is removed: the step is over. */
        void (*step_over)(struct attempt *at, enum run_why why);
        /* It ends with the outcome that was set. */
        void (*finish)(struct attempt *at);
        /* Nobody knows what became of it. */
        void (*lost)(struct attempt *at, const char *why);
        /* Files of this owner's jobs do not answer, and why: he gets no jobs here. NULL: they do again. */
        void (*owner_held)(struct agent *a, const char *owner, const char *why);
};

struct attempt {
        uint32_t magic;
        struct agent *a;
        struct queue *q;
        unsigned kind; /* of places behind the queue that it was taken for (queue_find_offer); 0 when not
                          known */
        struct attempt *next, **link; /* its queue's list of its state */
        uint64_t request;
        uint32_t member, fence, part, row, step_value;
        struct template *t;
        char **values; /* of the item */
        char *iwd;     /* the template's, its macros expanded */
        size_t value_count;
        char **filled; /* pairs: the inside of a $$() reference, and the place's value for it */
        size_t filled_count;
        uint64_t bytes; /* of what it has of its own, counted in a->held_bytes */
        enum attempt_state state;
        enum staging_state staging; /* in STAGING */
        bool wait_for_go, told_started, suspended, adopted, has_sandbox, result_sent,
                stopped;          /* stopped: it ran, and was ended with an agent of before */
        enum run_why adopted_why; /* how the last task of an earlier life ended */
        bool counted;             /* its cpus, memory and disk are committed */
        bool keeps_room;          /* while it waits: see attempt_keep_room */
        uint32_t set_size;        /* of the set that it starts with; 0: none */
        char *set_machines;       /* of the set's members, with commas; NULL: not said */
        uint64_t set, seen;       /* seen: generation of the runner's listing that named it */
        int64_t assigned_ms;      /* boot clock */
        int64_t entered_ms;       /* Unix: its state */
        uint64_t lease_ms;
        unsigned step;
        bool stepping;       /* the runner has a task of this step */
        bool task_runs;      /* and its program, as far as the runner has told */
        int64_t begin_by_ms; /* boot clock: its task begins before that or never; 0: whenever */
        bool begun;          /* its runner is silent, and has begun a task of it */
        uint64_t signals;    /* for when it does: 1 << (number - 1) */
        struct cgroup *cgroup;
        uint64_t cpus_milli, memory_bytes;
        size_t credential_count; /* that it holds, see credentials.h */
        bool credentials_placed;
        struct attempt_kill kill;
        struct attempt_checkpoint checkpoint;
        struct delivery *delivery; /* what is under way of its outputs, or its checkpoint; or NULL */
        char *devices;             /* that it holds: see devices_take; NULL: none */
        uint64_t memory_seen;      /* largest sample */
        int64_t pid;
        bool leaves_sandbox; /* DONE: it goes once the result is in the journal */
        bool all_ended;      /* it had a control group of its own, which is empty */
        bool recycles;       /* files of streams that are empty were left for sandbox_recycle */
        bool printed_asked;  /* see streams_wait */
        int64_t trimmed_ms;  /* boot clock: the last time that its streams were, see streams_tick */
        uint64_t told_where; /* hash of what the server was told of where it is */
        struct stage *stage; /* what a worker does for it, or NULL */
        struct attempt_fetches fetches;
        struct attempt_environment environment;
        struct attempt_container container;
        struct output_transfers *output_transfers; /* outputs on their way to URLs, or NULL */
        struct staged_input *inputs;               /* as they were when the job began */
        size_t input_count, input_cap;
        struct job_result result;
};

struct run_id attempt_task(const struct attempt *at); /* of its step, in its round */
/* The first outcome stays. */
void attempt_set_outcome(struct attempt *at, enum outcome outcome, uint32_t hold_code, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* The outcome is another one, or is not known yet after all. */
void attempt_clear_outcome(struct attempt *at);
/* Has any of its steps an image? Every step of an attempt has the same limits. */
bool attempt_has_container(const struct attempt *at);

struct template *template_ref(struct template *t);
void template_unref(struct template *t);
