/* agent: what the files of the agent share.
 *
 * One thread, one loop; other threads copy files (workers). What happens in a turn of the loop is gathered
 * and leaves at its end, in this order (agent_turn): the journal is written, tasks go to the runner, messages
 * go to the server, offers are brought up to date. So nothing is told or started that a restart would not
 * know.
 *
 * An attempt (attempt.c):
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

#include "agent/config/config.h"
#include "agent/config/users.h"
#include "agent/queue/machine.h"
#include "agent/queue/queue.h"
#include "agent/transfer/cache.h"
#include "agent/transfer/stage_work.h"
#include "base/buf.h"
#include "base/cgroup.h"
#include "base/err.h"
#include "base/hidden.h"
#include "base/map.h"
#include "base/sm.h"
#include "ev/loop.h"
#include "place/lease_clock.h"
#include "place/offer.h"
#include "place/probe_estimate.h"
#include "run/runner.h"
#include "wire/session.h"

#define AGENT_MAGIC   0x41474e54u
#define ATTEMPT_MAGIC 0x41545450u
#define STEPS_MAX     64
#define STEP_NO_JOBS                                                                                         \
        0x80000000u /* in a run_id's step: a stage's, a mover's, an errand's, of the agent itself */

enum hold_code {
        HOLD_CREDENTIAL = 4,
        HOLD_NOT_STARTED = 6,
        HOLD_OUTPUT = 12,
        HOLD_INPUT = 13,
        HOLD_MEMORY = 34,
        HOLD_IMAGE = 35,
        HOLD_WALLTIME = 47
};

struct template
{ /* one part of a request */
        Drover__Template *m;
        unsigned refs;
        bool journaled;
        bool same_domain;        /* paths of the submitter mean the same here */
        bool own_cwd;            /* the job's folder is its sandbox */
        struct users_entry user; /* with `users`: whom it runs as, if not_mapped is NULL */
        char *not_mapped;        /* why it does not run here */
};

struct agent;
struct attempt {
        uint32_t magic;
        struct agent *a;
        struct queue *q;
        struct attempt *next, **link; /* its queue's list of its state */
        uint64_t request;
        uint32_t member, fence, part, row, step_value;
        struct template *t;
        char **values; /* of the item */
        char *iwd;     /* the template's, its macros expanded */
        size_t value_count;
        char **filled; /* pairs: the inside of a $$() reference, and the place's value for it */
        size_t filled_count;
        enum attempt_state state;
        bool wait_for_go, told_started, suspended, abandon, killing, adopted, journaled, has_sandbox, staged,
                result_sent, stopped; /* stopped: it ran, and was ended with an agent of before */
        enum run_why adopted_why;     /* how the last task of an earlier life ended */
        bool counted;                 /* its cpus, memory and disk are committed */
        bool keeps_room;              /* while it waits: see attempt_keep_room */
        uint32_t set_size;            /* of the set that it starts with; 0: none */
        char *set_machines;           /* of the set's members, with commas; NULL: not said */
        uint64_t set, seen;           /* seen: generation of the runner's listing that named it */
        int64_t assigned_ms;          /* boot clock */
        int64_t entered_ms;           /* Unix: its state */
        uint64_t lease_ms;
        unsigned step;
        bool stepping;    /* the runner has a task of this step */
        bool task_runs;   /* and its program, as far as the runner has told */
        uint64_t signals; /* for when it does: 1 << (number - 1) */
        struct cgroup *cgroup;
        uint64_t cpus_milli, memory_bytes;
        size_t credential_count; /* that it holds, see credentials.h */
        bool credentials_placed;
        /* see checkpoint.h */
        uint32_t round;
        bool checkpointing, vacating, checkpoint_result, checkpoint_unacked; /* …ing: being saved */
        bool carrying;            /* checkpointing, of one from another server: its step goes on */
        int64_t kill_at_ms;       /* boot clock; 0: not under way */
        bool nobody_hears;        /* vacating, and its program does not run where it was handed on to */
        const char *vacate_later; /* why, once its runner has told of it; NULL: nobody wants it */
        Drover__SpoolRef *restore;
        size_t restore_count;
        char *devices;        /* that it holds: see devices_take; NULL: none */
        uint64_t memory_seen; /* largest sample */
        int64_t pid;
        bool leaves_sandbox; /* DONE: it goes once the result is in the journal */
        uint64_t told_where; /* hash of what the server was told of where it is */
        struct stage *stage; /* what a worker does for it, or NULL */
        bool wanted;         /* its inputs were asked for */
        unsigned waits;      /* fetches that it waits for */
        struct {             /* of those, as inputs_look saw them */
                const struct fetch *one;
                uint64_t bytes, bytes_all;
                bool all_known; /* bytes_all is the sum of all */
        } fetching;
        struct input_pin *pins; /* what it has of the cache, while it is staged */
        size_t pin_count, pin_cap;
        struct environment *environment; /* that its program runs in, see environments.h; NULL: none */
        bool environment_waits;          /* for that to be made */
        struct environment *making;      /* and that is under way, for it and maybe others; or NULL */
        struct pull *pull;               /* an image that is being fetched for it, or NULL */
        unsigned imaged;                 /* steps whose images were fetched although they were here */
        struct ending *ending;           /* its container is over, and is being removed; or NULL */
        bool over;                       /* that was done, for this step */
        bool out_of_memory;              /* its engine says so */
        struct sends *sends;             /* outputs on their way to URLs, or NULL */
        struct staged_input *inputs;     /* as they were when the job began */
        size_t input_count, input_cap;
        /* the result */
        Drover__Outcome outcome;
        bool outcome_set;
        unsigned result_count;
        Drover__StepResult results[STEPS_MAX];
        uint64_t started_ms, ended_ms, cpu_user_ms, cpu_system_ms, memory_peak_bytes, bytes_in, bytes_out;
        uint32_t hold_code;
        int32_t hold_subcode;
        char *reason;
        struct output_ref *outputs;
        size_t output_count, output_cap;
};

struct output_ref {
        char *name;
        unsigned char sha256[32];
        uint64_t size;
        uint32_t mode;
        uint64_t at; /* in the file that is uploaded from, where it is one for all */
};

struct agent {
        uint32_t magic;
        struct loop *loop;
        struct config config;
        int dir, jobs; /* descriptors: state folder, sandboxes */
        char *jobs_path;
        /* with `users`, else NULL: the folder of root and the shepherd, its map, our program */
        char *shepherd_dir, *users_path;
        struct hidden *
                hidden; /* Drover's own folders; with `users` NULL: what is opened there is opened by users */
        unsigned containment; /* parts that jobs can have here: flags of run_spec */
        char instance[37], boot_id[64], hostname[256], user[64], home[256];
        bool turn_set, stopping;
        bool sandboxes_wait; /* some attempt leaves its sandbox */
        int exit_code;

        struct map *attempts;  /* by name: agent_key */
        struct map *templates; /* "request.part" */

        struct queue **queues; /* in the order of the configuration, then the retired ones */
        size_t queue_count, queue_cap;
        struct backend **backends;
        size_t backend_count, backend_cap;
        struct runner *runner; /* of the processes of this machine: backends[0]'s */
        struct errands *errands;
        bool swept;
        struct cgroups *cgroups;
        struct workers *workers;
        char *staging_held;        /* why the queues are closed: a file system holds workers; NULL: none */
        struct stage *children;    /* stages that other processes do */
        struct stage *logs;        /* lines that wait for the ones before them of the same owner */
        struct config_list denied; /* "!owner why": asked for, and not allowed by `users` */
        uint32_t child_serial;
        unsigned ticks_away; /* of the shepherd */
        struct cache *cache;
        struct inputs *inputs;   /* what is being fetched */
        struct map *credentials; /* of jobs' owners, see credentials.h */
        struct movers *movers;
        struct stores *stores;
        struct spool *spool;

        struct connection *connection;
        bool greeted; /* the server knows what we have: messages and offers may go */
        struct lease_clock lease;
        struct timer *lease_timer, *tick;

        struct name_list started;
        struct refusal *refusals;
        size_t refusal_count, refusal_cap;

        struct journal *journal;
        struct machine machine;
        struct devices *devices; /* of the machine */
        struct engine *engines;  /* containers.h */
        struct environments *environments;
        uint64_t machine_cpus_milli, machine_memory_bytes; /* for all process queues together */
        struct buf use_kept;                               /* as STATE/use has it */
        unsigned use_ticks;
};

/* agent.c */
void agent_turn(void *agent);
void agent_turn_later(struct agent *a); /* once, after the callbacks of this turn of the loop */
struct attempt *agent_find(struct agent *a, uint64_t request, uint32_t member, uint32_t fence);
void agent_key(char room[17], uint64_t request, uint32_t member, uint32_t fence); /* 16 bytes */

/* attempt.c */
struct attempt *attempt_new(struct queue *q, struct template *t, uint64_t request, uint32_t member,
                            uint32_t fence);
void attempt_free(struct attempt *at);
void attempt_move(struct attempt *at, enum attempt_state to);
/* One that waits for its set's Go has its room from now on: it must not wait for that as well. */
void attempt_keep_room(struct attempt *at);
void attempt_schedule(struct agent *a);               /* starts what fits */
void attempt_stage(struct attempt *at);               /* once its credentials are here */
void attempt_next_round(struct attempt *at);          /* its step is submitted again */
struct run_id attempt_task(const struct attempt *at); /* of its step, in its round */
/* Its images are here; or why not. */
void attempt_imaged(struct attempt *at, const char *why);
void attempt_step_over(struct attempt *at, enum run_why why);               /* the current step has ended */
void attempt_staged(struct attempt *at, int hold_code, const char *reason); /* inputs are there, or not */
/* Inputs do not come, for no fault of the job's: it goes back to the queue. The attempt may be gone then. */
void attempt_give_back(struct attempt *at, const char *reason);
void attempt_delivered(struct attempt *at, int hold_code, const char *reason); /* outputs are */
bool attempt_frees(struct agent *a,
                   const struct run_event *e); /* its last process has ended: its resources are free */
void attempt_lost(struct attempt *at, const char *why); /* nobody knows what became of it: finished as lost */
void attempt_kill(struct attempt *at, Drover__Outcome outcome, uint64_t grace_ms, const char *reason,
                  uint32_t hold_code);
/* Delivers no more, whatever it is at. ATTEMPT_DELIVERING only. */
void attempt_stop_delivery(struct attempt *at, Drover__Outcome outcome, const char *reason,
                           uint32_t hold_code);
void attempt_abandon(struct attempt *at); /* stop, deliver nothing, forget */
void attempt_finish(struct attempt *at);  /* DONE: into the journal, and to the server */
void attempt_forget(struct attempt *at);  /* the server has the result, or wants none */
void attempt_set_outcome(struct attempt *at, Drover__Outcome outcome, uint32_t hold_code, const char *fmt,
                         ...) __attribute__((format(printf, 4, 5)));
struct template *template_ref(struct template *t);
void template_unref(struct template *t);

/* attempt_event.c */
void attempt_signal(struct attempt *at, unsigned number); /* to its program, once that runs */
void attempt_event(struct backend *b, const struct run_event *e);

/* expand.c */
/* The text with the member's macros filled in; "" for NULL. 0, or -EINVAL with err. */
int expand_text(const struct attempt *at, const char *text, struct buf *out, struct err *err);
/* Sets at->iwd, once the item is known. A folder whose macros cannot be expanded stays as it is written, and
 * its files are not found. */
void expand_iwd(struct attempt *at);
/* The program's path as it is run, for people too. */
void expand_program(const struct attempt *at, const Drover__Step *step, struct buf *out);
/* What a step reads: a path, or a name in the sandbox; empty: nothing. 0, or -EINVAL. */
int expand_input(const struct attempt *at, const Drover__Step *step, struct buf *out, struct err *err);
/* Asks the queue's runner when another one like it would begin. */
void expand_quote(const struct attempt *at);
uint64_t expand_gpus(const Drover__Template *m); /* that a job of it asks for */
/* Starts the attempt's current step. 0, or -EINVAL with err: it can never run as it is. */
int expand_submit(struct attempt *at, struct err *err);
/* A stream's file beneath the sandbox (".drover_out.0"), NULL for none; *ret_index is its number. */
int expand_stream(const struct attempt *at, const char *text, struct buf *ret_path, struct err *err);

/* whereabouts.c */
void whereabouts_tell(struct agent *a); /* every second */
/* Before its end is told: the path at other servers of one that failed there. */
void whereabouts_tell_end(const struct attempt *at);

/* sandbox.c */
void sandbox_name(const struct attempt *at, char room[64]);
int sandbox_make(struct attempt *at); /* 0 or -errno */
/* With `users`: the agent itself writes in it, too. */
#define SANDBOX_OF_ENGINE "engine." /* and "batch.": beside the sandboxes, folders of users */
bool sandbox_is_shared(const struct attempt *at);
void sandbox_remove(struct attempt *at);
void sandbox_remove_left(struct agent *a); /* of those that are done: the journal has their results */
void sandbox_sweep(struct agent *a);       /* removes those that are no attempt's */

/* assign.c */
void assign_message(struct agent *a, const Drover__Assign *m);
void assign_go(struct agent *a, const Drover__Go *m);
void assign_control(struct agent *a, const Drover__Control *m);
void assign_acked(struct agent *a, const Drover__ResultAck *m);
void assign_checkpoint_acked(struct agent *a, const Drover__ResultAck *m);
void assign_inventory(struct agent *a, const Drover__InventoryReply *m);
struct template *assign_template(struct agent *a, const Drover__Template *m); /* kept in a->templates */
void assign_templates_drop(struct agent *a); /* those in use stay with their attempts */
struct attempt *assign_member(struct queue *q, struct template *t, const Drover__Group *g, uint32_t member);
bool assign_owner_is_ours(const struct agent *a, const char *owner); /* may we run his jobs? */

/* report.c */
void report_name(struct name_list *l, const struct attempt *at);
void report_accept(struct attempt *at);
void report_refuse(struct agent *a, const char *queue, const struct attempt *at, bool hold,
                   const char *reason);
void report_flush(struct agent *a);
void report_inventory(struct agent *a);
void report_pack_result(const struct attempt *at, struct buf *out); /* a packed JobResult, appended */
void report_refusals_drop(struct agent *a);
void report_script(struct agent *a, const Drover__ScriptGet *m); /* what was submitted for an attempt */
void report_lists_free(struct agent *a);

/* journal.c */
int journal_open(struct agent *a, struct err *err); /* reads what was there: attempts and results */
void journal_close(struct agent *a);
void journal_accepted(struct queue *q, struct template *t, const Drover__Group *g);
void journal_devices(const struct attempt *at); /* what it holds now */
void journal_result(struct attempt *at);
void journal_stopped(struct attempt *at); /* it runs, and ends with this agent */
void journal_gone(struct agent *a, uint64_t request, uint32_t member, uint32_t fence);
void journal_flush(struct agent *a);
int journal_error(const struct agent *a); /* -errno: it cannot be written now, and is tried again; 0 */

/* stage.c, stage_child.c, stage_out.c */
/* `carried`: see RUN_CHECKPOINTED; or NULL */
void stage_checkpoint(struct attempt *at,
                      const char *carried); /* into the spool, and then calls attempt_delivered */
/* With `users`: writes its credentials as its user. The first time attempt_staged is called then. */
void stage_credentials(struct attempt *at);
void stage_in(struct attempt *at);
void stage_out(struct attempt *at);
void stage_cancel(struct attempt *at);
/* With `users`: adds to the log as the owner's user, and then calls userlog_written. */
void stage_log(struct agent *a, const Drover__UserLogWrite *m, const struct users_entry *user);
/* True: the task was a stage's, not a job's. */
bool stage_event(struct agent *a, const struct run_event *e);
/* With `users`: empties and removes a sandbox, as the user whose it is. */
void stage_remove(struct agent *a, const char *name, uint64_t request, uint32_t member, uint32_t fence);
void stage_tick(struct agent *a); /* every second: what makes no progress fails */
void stage_workers_open(struct agent *a);
void stage_workers_close(struct agent *a);

/* inputs.c */
struct input_pin {
        char *key; /* as the job names it: a URL; or of what was shipped, "sha256:" and its checksum */
        struct cached *contents;
};
void inputs_open(struct agent *a);
void inputs_close(struct agent *a);
/* 0: all that is to be fetched is in the cache, pinned. 1: stage_in is called again, or attempt_staged with
 * what is wrong. -EINVAL with err. */
int inputs_want(struct attempt *at, struct err *err);
struct cached *inputs_find(const struct attempt *at, const char *key);
struct cached *inputs_find_shipped(const struct attempt *at, const Drover__SpoolRef *ref);
void inputs_forget(struct attempt *at); /* neither waits nor pins any more */
/* How far are they? Sets `fetching` of all attempts that wait. It says something until the loop goes on. */
void inputs_look(struct agent *a);
/* One of input_files at a time, expanded: calls fn with each element. 0, or what fn or the expansion said. */
int inputs_each(const struct attempt *at, int (*fn)(void *arg, struct str element, struct err *err),
                void *arg, struct err *err);
/* A URL other than file://: what movers fetch. The path of a file:// URL, or of none, in *ret_path (the
 * caller's to free). */
bool inputs_is_url(struct str element, char **ret_path);
struct str inputs_name(struct str element); /* its name in the sandbox; empty: it has none */

/* spool.c */
struct fetch;
void spool_fetch(struct agent *a, struct fetch *f);
void spool_data(struct agent *a, const Drover__SpoolData *m);
void spool_stored(struct agent *a, const Drover__SpoolStored *m);
void spool_session_lost(struct agent *a);
void spool_session_ready(struct agent *a);
void spool_open(struct agent *a);
void spool_close(struct agent *a);
void spool_forget(struct attempt *at); /* uploads */
/* Sends the files named in at->outputs, and then calls attempt_delivered. They are read from `paths`
 * (taken); or, when `data` (taken) is no -1, from there, each from where its `at` says. */
void spool_upload(struct attempt *at, char **paths, int data);

/* sends.c */
/* An output to a URL: a file of the sandbox, or, when `data` is no -1, size bytes at `at` of that. */
struct send_file {
        char *from, *url; /* taken */
        uint64_t at, size;
};
/* Sends them one after the other; then what goes to the spool, if there are `paths` (else NULL); then calls
 * attempt_delivered. All are taken; data as in spool_upload. */
void sends_start(struct attempt *at, struct send_file *files, size_t count, char **paths, int data);
void sends_forget(struct attempt *at);
void sends_doing(const struct attempt *at, struct buf *out); /* which output is on its way, in words */
void sends_go_on(struct attempt *at); /* a credential that they waited for may be here */
/* Does the next one wait for a store that is silent? */
bool sends_wait_for_store(const struct attempt *at);
/* Those that wait for the store, or have asked whether it is there, go on. Stores may have other numbers, or
 * none. */
void sends_store_known(struct agent *a, size_t store, bool answers);
void sends_stores_changed(struct agent *a);

/* stores.c */
void stores_open(struct agent *a);
/* Something that others keep here, which counts like contents of the cache. An image has the name that a job
 * has for it, or is a path. Nothing changes when it is known already; or, of stores_release, is not. */
void stores_hold(struct agent *a, struct str name, uint64_t size, Drover__CachedKind kind);
void stores_release(struct agent *a, struct str name);
void stores_close(struct agent *a);
void stores_message(struct agent *a, const Drover__Stores *m);
void stores_greeted(struct agent *a); /* tells all that the server is to know */
void stores_turn(struct agent *a);    /* tells what has changed */
void stores_tick(struct agent *a);    /* every second */
/* What the cache knows a URL by, as the attempt asks for it (base/file_key.h); *ret_store is an index, or
 * FILE_STORE_NONE. False: it is none. */
bool stores_key(const struct attempt *at, struct str url, struct buf *ret_key, size_t *ret_store);
/* Another way to the same file: the URL under the store's n-th prefix, but the one it has. False: no more. */
bool stores_other_way(const struct agent *a, struct str url, size_t store, size_t n, struct buf *ret);
size_t stores_of(const struct agent *a, struct str url);
/* A transfer was measured; store may be FILE_STORE_NONE. SIZE_MAX - 1 is the server's spool. */
#define STORE_SPOOL (SIZE_MAX - 1)
void stores_measured(struct agent *a, size_t store, enum probe_way way, uint64_t bytes, uint64_t took_us);
/* A transfer to or from it has succeeded; store may be FILE_STORE_NONE. */
void stores_answered(struct agent *a, size_t store);
/* One has failed with this error (of a move_answer) as if nobody was there: STORE_SILENT, the store is known
 * not to answer; STORE_ASKED, it is asked, and fetch_store_known is called; STORE_ANSWERS: it is not that. */
enum store_word { STORE_ANSWERS, STORE_SILENT, STORE_ASKED };
enum store_word stores_doubt(struct agent *a, size_t store);
bool stores_is_silence(int error);
/* Is it known not to answer, and what was said then? NULL: it answers, or is none. Borrowed. */
bool stores_is_down(const struct agent *a, size_t store);
const char *stores_down_why(const struct agent *a, size_t store);
/* The name of a store; NULL: there is no such one. */
const char *stores_name(const struct agent *a, size_t store);

/* userlog.c */
struct userlog_file_result;
/* Answers the server. */
void userlog_written(struct agent *a, uint64_t serial, int r, const struct userlog_file_result *result,
                     struct err *err);
void userlog_write(struct agent *a, const Drover__UserLogWrite *m);

/* limits.c */
void limits_prepare(struct attempt *at); /* takes a control group */
void limits_release(struct attempt *at);
void limits_usage(struct attempt *at); /* adds what the control group counted to the result */
/* The job's processes met the limit of their memory: one that failed did so for that. */
bool limits_oom(struct attempt *at);
/* The kernel has killed processes of it for their memory, whether its program noticed or not. */
bool limits_killed(struct attempt *at);
void limits_sample(struct agent *a); /* memory and disk of what runs, where no group limits it */

/* connect.c */
void connect_open(struct agent *a); /* begins to dial */
void connect_close(struct agent *a);
/* The lease's end has moved: the shepherd must know. */
void connect_lease_changed(struct agent *a);
/* If there is a session, it ends, and the next one begins with what we have now. */
void connect_anew(struct agent *a);
void connect_send(struct agent *a, Drover__ToServer *m);
