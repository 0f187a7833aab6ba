/* attempt: one attempt of one job at this place, and the template that it shares with other jobs of its
 * request.
 *
 * The attempt's life (attempt/life.c):
 *
 *   assigned -> WAITING -> STAGING -> RUNNING (step by step) -> DELIVERING -> DONE -> acknowledged, gone
 *                  |          |           |                         |          ^
 *                  +----------+-----------+-------------------------+----------+   kill, failure, loss
 *
 * WAITING: the attempt is accepted and in the journal, and waits for room or for its gang's Go. STAGING:
 * inputs are fetched and copied. RUNNING: the runner has one of its steps (or gets it in this turn).
 * DELIVERING: no process is left; outputs are copied. DONE: the result is in the journal, and is sent until
 * the server acknowledges it.
 */
#pragma once
#include <sys/stat.h>

#include "agent/config/users.h"
#include "agent/message/job_result.h"
#include "agent/message/job_template.h"
#include "agent/model/agent.h"
#include "agent/model/queue.h"

#define ATTEMPT_MAGIC 0x41545450u
/* Bit of a run_id's step: the task is one of the agent's own (staging, a mover, a command), not a job's. */
#define STEP_NO_JOBS 0x80000000u
/* Bit beside STEP_NO_JOBS: it is a command beside an attempt's program that goes on without the agent. The
 * bits below are of the command's number, by which the next agent knows it. */
#define STEP_STAYS 0x40000000u

enum hold_code {
        HOLD_CREDENTIAL = 4,
        HOLD_NOT_STARTED = 6,
        HOLD_OUTPUT = 12,
        HOLD_INPUT = 13,
        HOLD_MEMORY = 34,
        HOLD_IMAGE = 35,
        HOLD_WALLTIME = 47
};

/* The stages of STAGING (attempt/staging.c):
 *
 *   CREDENTIALS -> IMAGES -> INPUTS -> ENVIRONMENT -> COPYING -> PLACING -> RUNNING
 *                     \-------- no files are needed ------------^
 *
 * CREDENTIALS: the server sends credentials. IMAGES: the engine fetches images. INPUTS: inputs come into the
 * cache and are pinned. ENVIRONMENT: the environment is made from its file. COPYING: inputs go into the
 * sandbox. PLACING: the credentials' files are written there. Each stage ends when a part calls news->stage
 * or news->staged, and any of them may fail.
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

/* How an attempt was told to end (attempt/kill.c):
 *
 *   NONE -> VACATING -> ABANDONED      VACATING: the program was asked by a signal, and has until at_ms
 *      |--> KILLED ------^             KILLED: the program is killed with a grace period
 *      |--> ENDED -------^             ENDED: likewise, but its outputs are delivered
 *       \----------------^             ABANDONED: nothing is delivered or reported
 *
 * An attempt that is killed while it is vacated goes on being vacated: what it leaves is its checkpoint.
 */
enum kill_state { KILL_NONE, KILL_VACATING, KILL_KILLED, KILL_ENDED, KILL_ABANDONED, KILL_STATES };

struct attempt_kill {
        enum kill_state state;
        int64_t at_ms;     /* boot clock; 0: the time to end has not begun, or is over */
        bool nobody_hears; /* VACATING: the program does not run at the server that it was delegated to */
        const char
                *vacate_later; /* reason of a vacate to be done when the runner has reported it; NULL: none */
};

/* Checkpoints of a RUNNING attempt (attempt/checkpoint.c):
 *
 *   NONE, UNACKED -> SAVING ---> UNACKED -> NONE
 *        \--------> CARRYING ----^
 *
 * SAVING: the step has ended, and the checkpoint's files go to the server. CARRYING: a checkpoint made at
 * another server is passed on while the step goes on. UNACKED: the server was told of the checkpoint and has
 * not acknowledged it. SAVING and CARRYING return to NONE when nothing could be kept.
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
        uint32_t round;            /* checkpoints made of this step */
        struct spool_ref *restore; /* files of the checkpoint that the attempt starts from */
        size_t restore_count;
};

struct attempt_fetches { /* owned by transfer/inputs.c: inputs that come from elsewhere */
        bool wanted;     /* the inputs were asked for */
        unsigned waits;  /* fetches that have not ended */
        struct {         /* progress of those, as inputs_look saw it last */
                const struct fetch *one;
                uint64_t bytes, bytes_all;
                bool all_known; /* bytes_all is the sum of all */
        } seen;
        struct map *pins; /* cache entries pinned while staging, struct cached by the job's name for it: a
                             URL, or "sha256:" and the checksum of a shipped file; NULL: none */
        size_t url_count; /* URLs that were asked for */
};

struct attempt_environment {        /* owned by environments.c */
        struct environment *used;   /* environment that the program runs in; NULL: none */
        bool waits;                 /* an environment has to be made first */
        struct environment *making; /* the environment being made, perhaps for others too; or NULL */
};

struct attempt_container {     /* owned by agent/container */
        struct pull *pull;     /* the image being fetched, or NULL */
        unsigned imaged;       /* steps whose images were fetched although they were here */
        struct ending *ending; /* the removal of the step's container, which has ended; or NULL */
        bool over;             /* the removal is done, for this step */
        bool out_of_memory;    /* the engine reports an out-of-memory kill */
};

/* A job template that the agent holds, and what it means at this place. */
struct held_template {
        struct job_template *m;
        struct agent *a;
        uint64_t bytes; /* counted in a->held_bytes */
        unsigned refs;
        bool journaled;
        bool same_domain;        /* the submitter's paths mean the same on this machine */
        bool own_cwd;            /* the job's folder is its sandbox */
        struct users_entry user; /* with `users`: local user of the jobs, if not_mapped is NULL */
        char *not_mapped;        /* why jobs of it cannot run here */
};

struct outputs;
/* Callbacks by which the parts that work for attempts report. There is one set, agent->news, given by
 * attempt/life.c; each call may end and free the attempt. */
struct attempt_news {
        /* Something that staging waited for has arrived: staging goes on with its next stage. */
        void (*stage)(struct attempt *at);
        /* Staging has ended: the files are in the sandbox, or (hold_code) cannot be, with the reason. */
        void (*staged)(struct attempt *at, int hold_code, const char *reason);
        /* Inputs or the image cannot be had, through no fault of the job: the attempt goes back to the
         * server's queue.
         */
        void (*give_back)(struct attempt *at, const char *reason);
        /* Outputs, or the files of a checkpoint, have left the sandbox; `outputs` lists those that are still
         * to be sent, and its contents are taken over. */
        void (*outputs)(struct attempt *at, struct outputs *outputs);
        /* All files are where they belong, or (hold_code) cannot be brought there. */
        void (*delivered)(struct attempt *at, int hold_code, const char *reason);
        /* The rest of what the job has printed at another server has arrived, or cannot be had. */
        void (*printed)(struct attempt *at);
        /* A credential of the attempt has arrived, or has been replaced. */
        void (*credential)(struct attempt *at);
        /* The container of the step is removed, so the step is over. */
        void (*step_over)(struct attempt *at, enum run_why why);
        /* The attempt ends with the outcome that was set. */
        void (*finish)(struct attempt *at);
        /* The attempt's fate cannot be known. */
        void (*lost)(struct attempt *at, const char *why);
        /* The file system of this owner's jobs does not answer, so he gets no jobs here. why NULL: it answers
         * again. */
        void (*owner_held)(struct agent *a, const char *owner, const char *why);
};

struct attempt {
        uint32_t magic;
        struct agent *a;
        struct queue *q;
        unsigned kind; /* kind of place behind the queue that it was assigned to (queue_find_offer); 0 when
                          not known */
        struct attempt *next, **link; /* the queue's list of attempts in this state */
        uint64_t request;
        uint32_t member, fence, part, row, step_value;
        struct held_template *t;
        char **values; /* the item's values */
        char *iwd;     /* the template's folder, macros expanded */
        size_t value_count;
        char **filled; /* pairs: the inside of a $$() reference, and the place's value for it */
        size_t filled_count;
        uint64_t bytes; /* memory of its own, counted in a->held_bytes */
        enum attempt_state state;
        enum staging_state staging; /* in STAGING */
        bool wait_for_go, told_started, suspended, adopted, has_sandbox, result_sent,
                stopped;          /* stopped: it ran, and was ended together with an earlier agent */
        enum run_why adopted_why; /* how the last task of an earlier agent ended */
        bool counted;             /* its cpus, memory and disk are committed */
        bool keeps_room;          /* while it waits: see attempt_keep_room */
        uint64_t gang;            /* number of the gang's first member */
        uint32_t gang_size;       /* 0: no gang */
        char *gang_machines;      /* machines of the gang's members, comma-separated; NULL: not known */
        uint64_t seen;            /* generation of the runner's listing that named it */
        int64_t assigned_ms;      /* boot clock */
        int64_t entered_ms;       /* Unix time at which it entered its state */
        uint64_t lease_ms;
        unsigned step;
        bool stepping;        /* the runner has a task of this step */
        bool task_runs;       /* the runner has reported that the program runs */
        int64_t runs_from_ms; /* boot clock: when it did */
        int64_t begin_by_ms;  /* boot clock: the task begins before that or never; 0: no limit */
        bool begun;           /* the runner is silent, and is known to have begun a task of it */
        uint64_t signals;     /* signals to be sent when it has run for a second: 1 << (number - 1) */
        struct cgroup *cgroup;
        uint64_t cpus_milli, memory_bytes;
        size_t credential_count; /* credentials that it holds, see credentials.h */
        bool credentials_placed;
        struct attempt_kill kill;
        struct attempt_checkpoint checkpoint;
        struct delivery *delivery; /* delivery of its outputs or its checkpoint that is under way; or NULL */
        char *devices;             /* devices that it holds: see devices_take; NULL: none */
        uint64_t memory_seen;      /* largest sample */
        uint64_t energy_from_uj;   /* the machine's counter when it began, or when this agent did */
        int64_t pid;
        bool leaves_sandbox; /* DONE: the sandbox is removed once the result is in the journal */
        bool all_ended;      /* its own control group is empty */
        bool recycles;       /* empty stream files were left for sandbox_recycle */
        bool tail_asked;     /* see output_tail_wait */
        int64_t trimmed_ms;  /* boot clock: last time its streams were trimmed, see output_tails_tick */
        uint64_t told_where; /* hash of the location that the server was told */
        struct stage *stage; /* a worker's task for it, or NULL */
        struct attempt_fetches fetches;
        struct attempt_environment environment;
        struct attempt_container container;
        struct output_transfers *output_transfers; /* outputs on their way to URLs, or NULL */
        struct staged_input *inputs;               /* inputs as they were when the job began */
        size_t input_count, input_cap;
        struct job_result result;
        struct live_output *live_output; /* NULL: the streams are not brought while the job runs */
        struct chirp *chirp;             /* calls that its program may make through a socket; NULL: none */
};

struct attempt_name attempt_name(const struct attempt *at);
struct run_id attempt_task(const struct attempt *at); /* id of its step's task, in its round */
/* Sets outcome and reason, unless they are set. */
void attempt_set_outcome(struct attempt *at, enum outcome outcome, uint32_t hold_code, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* Forgets the outcome, which turns out to be another one or not to be known yet. */
void attempt_clear_outcome(struct attempt *at);
/* Returns whether any of its steps runs in a container. Every step of an attempt has the same limits. */
bool attempt_has_container(const struct attempt *at);

struct held_template *held_template_ref(struct held_template *t);
void held_template_unref(struct held_template *t);
