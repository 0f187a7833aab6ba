/* core: the scheduler, as a pure state machine.
 *
 * The core keeps requests, jobs, classes, agents and their offers, and decides. It does no I/O, reads no
 * clock and no random source. The server passes it the time (core_clock) and everything that arrives; the
 * core calls the world (struct core_world) with what has happened (events, history rows: to be made durable)
 * and with what is to be done (assignments, controls: to leave only once the events before them are durable).
 * The simulator supplies another world for the same code.
 *
 * All calls are made on one thread. Outputs come during the call that caused them. After the calls of a turn,
 * core_match looks for work for the offers that changed. Times named at_ms are Unix milliseconds; leases are
 * counted on the second clock, which never jumps.
 */
#pragma once
#include "bank/order.h"
#include "base/err.h"
#include "base/job/file_key.h"
#include "base/job/past_job.h"
#include "base/set.h"
#include "classad/eval.h"
#include "core/data/data.h"
#include "core/model/event.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/submission.h"

/* Limits of one evaluation of a user's expression, because the queue waits for it: steps (some milliseconds)
 * and bytes. */
#define CORE_EVAL_STEPS_MAX 20000u
#define CORE_EVAL_BYTES_MAX (4u << 20)

/* Positive results of core calls. */
enum core_error {
        CORE_UNKNOWN = 1, /* no such request or job */
        CORE_INVALID,     /* the call makes no sense: err says why */
        CORE_FORBIDDEN,   /* the caller is not the owner */
        CORE_DAMAGED,     /* an impossible event or snapshot: err names it */
        CORE_CONFLICT,    /* the uuid was used for a different request */
        CORE_TOO_MANY,    /* the owner's limit in the queue is reached: err says what to do */
};

enum core_outcome { /* how an attempt ended; the numbers are those of drover.proto */
                    CORE_EXITED,
                    CORE_NOT_STARTED,
                    CORE_STAGING_FAILED,
                    CORE_LIMIT_EXCEEDED,
                    CORE_KILLED,
                    CORE_OUTCOME_LOST,
};
#define CORE_OUTCOMES (CORE_OUTCOME_LOST + 1)

/* Controls of attempts; the numbers are those of drover.proto. */
enum core_control {
        CORE_REMOVE,
        CORE_HOLD,
        CORE_VACATE,
        CORE_SUSPEND,
        CORE_RESUME,
        CORE_CHECKPOINT = 10,
        CORE_END = 11, /* outputs are delivered, unlike with CORE_REMOVE */
        CORE_SIGNAL = 256
}; /* CORE_SIGNAL + number of the signal */

/* Returns the control that ends an attempt whose job becomes `goal`. */
static inline enum core_control core_control_of_goal(enum job_state goal)
{
        return goal == JOB_REMOVED     ? CORE_REMOVE
               : goal == JOB_HELD      ? CORE_HOLD
               : goal == JOB_COMPLETED ? CORE_END
                                       : CORE_VACATE;
}

/* Hold codes of HTCondor's manual that Drover gives itself. */
enum core_hold_code {
        CORE_HOLD_UNSPECIFIED = 0, /* also HTCondor's code for $$() that cannot be filled in */
        CORE_HOLD_USER = 1,
        CORE_HOLD_POLICY = 3,
        CORE_HOLD_CREDENTIAL = 4,
        CORE_HOLD_POLICY_UNDEFINED = 5,
        CORE_HOLD_NOT_STARTED = 6,
        CORE_HOLD_OUTPUT = 12,
        CORE_HOLD_INPUT = 13,
        CORE_HOLD_SUBMIT = 15,
        CORE_HOLD_DEFERRAL_MISSED = 20,
        CORE_HOLD_LIMIT = 34,
        CORE_HOLD_JOB_DURATION = 46,
        CORE_HOLD_EXECUTE_DURATION = 47,
        CORE_HOLD_DEPENDENCY = 1001,  /* Drover's own: a job that it waits for did not end as required */
        CORE_HOLD_LOST = 1002,        /* Drover's own: too many of its attempts were lost with their nodes */
        CORE_HOLD_BANK = 1003,        /* Drover's own: its account in the bank cannot pay for it */
        CORE_HOLD_RESERVATION = 1004, /* Drover's own: the reservation that it names is over */
};

/* An order to run one group of members of one part under one fence. Borrowed during the call. */
struct core_assignment {
        const char *agent, *queue;
        uint64_t serial; /* of the offer that the assignment answers */
        uint64_t request;
        uint32_t part;
        uint32_t fence;
        const struct set *members;
        uint64_t lease_ms;
        struct str values; /* attributes that the place fills in, packed: see fill.h */
        bool restarts;     /* some members may have a checkpoint */
        /* Members of a gang start only after `go`. */
        uint32_t gang_first, gang_size; /* the gang is [first, first + size); size 0: no gang */
        struct str gang_machines; /* their machines in that order, comma-separated; empty: the list is too
                                     long */
};

/* The usage of one attempt, at its end of any kind. Borrowed during the call. Times reported by an agent are
 * bounded by those of the server: none is before the submit or after now. */
struct core_usage {
        uint64_t request;
        uint32_t member, fence, starts;          /* starts: number of the job's attempts that have started */
        struct str owner, account, agent, queue; /* account: of the bank or of the settings; empty: none */
        enum core_outcome outcome;
        bool charged, signaled;                     /* charged: the bank has charged `amount` */
        int32_t exit_code;                          /* exit code, or signal number if signaled */
        int64_t submitted_ms, started_ms, ended_ms; /* started_ms 0: the attempt did not start */
        int64_t cpu_user_ms, cpu_system_ms;
        int64_t cpus, gpus, memory_mib; /* resources that the attempt had */
        uint64_t memory_peak_bytes, bytes_in, bytes_out, reservation;
        uint64_t energy_uj; /* microjoules; 0: not measured */
        int64_t amount;
};

struct bank_entry;
struct core_world {
        void *arg;
        void (*event)(void *arg, const struct event *e);      /* borrowed: pack it during the call */
        void (*history)(void *arg, const struct past_job *p); /* add a row to history, same commit */
        void (*keep)(void *arg, uint64_t request,
                     struct str record);             /* store the request's record, same commit */
        void (*forget)(void *arg, uint64_t request); /* delete it, same commit */
        void (*assign)(void *arg, const struct core_assignment *a);
        void (*control)(void *arg, const char *agent, enum core_control what, uint64_t request,
                        uint32_t fence, const struct set *members);
        /* Replay only: reads a request's record. 0 or an error. */
        int (*load)(void *arg, uint64_t request, struct buf *ret, struct err *err);
        /* May be NULL. An event of the log has been applied (core_replay). */
        void (*replayed)(void *arg, const struct event *e);
        /* May be NULL where there are no gangs. The waiting members of a gang may start. Repeated whenever
         * the agent may have missed it. */
        void (*go)(void *arg, const char *agent, uint64_t request, uint32_t fence, const struct set *members);
        /* May be NULL: there are no credentials. Says what the credential `ret->name` of the request's jobs
         * is for, if it exists: sets urls, borrowed until the core is called again, and s3. `handed_on`: the
         * request came from another server and has only the credentials that came with it. The world calls
         * core_request_credentials when the answer has changed. */
        void (*credential)(void *arg, uint64_t request, struct str owner, bool handed_on,
                           struct file_credential *ret);
        /* May be NULL: renewals come by core_renew only. Asked before leases of the agent are ended. Returns
         * the time of the steady clock at which its newest renewal was acknowledged, if that is after
         * known_ms; otherwise returns known_ms, and acknowledges no further renewal of its session. */
        int64_t (*heard)(void *arg, const char *agent, int64_t known_ms);
        /* May be NULL: a movement of the bank, to be kept for statements in the same commit. */
        void (*movement)(void *arg, const struct bank_entry *e);
        /* May be NULL: an attempt has ended; to be kept for reports in the same commit. */
        void (*usage)(void *arg, const struct core_usage *u);
};

/* Placement policies: which of the places that can take a job gets it, see match/policy.h. */
enum core_placement {
        CORE_PLACE_COST,    /* least estimated time to the result; a job may wait for a better place */
        CORE_PLACE_BLIND,   /* ignores data */
        CORE_PLACE_FIFO,    /* jobs in submit order, each to the free place of least cost */
        CORE_PLACE_CACHED,  /* the place that holds most of the job's bytes */
        CORE_PLACE_PASSIVE, /* search order; places of the same order take turns */
        CORE_PLACE_CLUSTER, /* the agent that has least of its processors in use */
        CORE_PLACE_QUEUE,   /* the queue with the shortest measured wait */
        CORE_PLACEMENTS
};
/* Returns a policy's name. */
const char *core_placement_name(enum core_placement p);
/* Finds the policy of this name. 0; -EINVAL. */
int core_placement_parse(struct str name, enum core_placement *ret);
/* The same for a policy that one job may ask for (PlacementPolicy): fifo is an order of all jobs. */
int core_placement_of_job(struct str name, enum core_placement *ret);
#define CORE_PLACEMENTS_OF_JOBS "cost, blind, cached, passive, cluster_monitor or queue_monitor"

struct share_config {
        int64_t half_life_ms;       /* 0: a week */
        int64_t memory_per_cpu_mib; /* memory that counts as one processor; 0: memory is not charged */
};

/* Weights of the factors that make the order of classes, see order.h. */
struct order_weights {
        bool given;        /* false: fair_share, qos, credential and waiting 1, others 0 */
        double fair_share; /* points for each processor of an account, relative to its share of the pool */
        double qos;        /* for each point of the quality of service */
        double size;       /* for each processor that the job asks for */
        double age;        /* for each hour since the submit */
        double user;       /* for each point of JobPrio, among all users' jobs */
        double credential; /* for each point of core_credential_set */
        double waiting;    /* for each processor in use and each day of waiting, see precedence.h */
};

struct core_config {
        int64_t lease_ms;                /* default lease; 0: 5 min */
        int64_t lease_margin_ms;         /* time that the server waits longer than the agent; 0: 10 s */
        int64_t periodic_ms;             /* interval of periodic policies; 0: 20 s */
        int64_t keep_finished_ms;        /* time that a finished request stays in memory; 0: one day */
        uint32_t keep_finished;          /* number of finished requests in memory; 0: 10,000 */
        uint32_t classes_max;            /* classes of one request; 0: 1,000 */
        uint32_t names_max;              /* attribute names used only by one owner's jobs; 0: 50,000 */
        uint32_t rekey_slice;            /* parts put into classes in one slice; 0: 120 */
        uint32_t account_classes_max;    /* classes with idle jobs of one account; 0: 20,000 */
        bool shadow;                     /* only replays, to make snapshots: no matching, no templates */
        uint64_t seed;                   /* seed of random() in users' expressions */
        uint64_t (*eval_clock_ns)(void); /* see eval.h; NULL: expressions are limited by their steps alone */
        struct share_config share;
        struct order_weights weights;
        int64_t reserve_after_ms; /* wait after which a class that was passed over gets a reservation; 0: 1
                                     min; -1: never */
        double reserve_idle;  /* part of a queue's processors that reservations may keep idle on average; 0: 3
                                 percent */
        int64_t gang_wait_ms; /* time for all members of a gang to be accepted, or all are freed; 0: 30 s */
        enum core_placement placement;
        uint32_t max_lost;     /* attempts lost in a row after which a job is held; 0: 5 */
        int64_t lost_pause_ms; /* pause after the second lost attempt, doubled after each further one; 0: 5 s;
                                  -1: no pause */
        bool keep_lossy_nodes; /* do not drain nodes that lose one job after the other */
        int64_t node_silent_ms; /* time without a message after which a node has failed; 0: 10 min */
        int64_t better_wait_ms; /* longest wait of a job for a better place; 0: 5 min; -1: jobs do not wait */
        bool check_choices;     /* compare every chosen place with all others, for core_check */
};

/* Creates a core without state. *config is copied; world->arg must outlive the core. */
struct core *core_new(const struct core_config *config, const struct core_world *world);
void core_free(struct core *c); /* NULL is fine */
struct symbols *core_symbols(struct core *c);
/* Sets the number of units of a pool, before anything is replayed. Names are as in limit.h.
 * "user/NAME@DOMAIN" limits a user's running jobs, "queued/NAME@DOMAIN" the user's jobs in the queue,
 * "queued_kib/NAME@DOMAIN" the KiB of the user's requests (submission_kib); a star in place of the name sets
 * each user's limit. */
void core_limit_set(struct core *c, struct str name, int64_t units);
/* Sets a group of accounts, see shares_set_group. Returns 0; CORE_INVALID with err. */
int core_account_set(struct core *c, struct str group, double shares, const struct str *users,
                     size_t user_count, struct err *err);
/* Sets a quality of service, and the users who may ask for it (none named: all). */
void core_qos_set(struct core *c, struct str name, double priority, const struct str *users,
                  size_t user_count);
/* Kinds of points that jobs get in the order: of their user (ann@lab), of the group of all users of a domain
 * (lab), of their accounting group, which includes groups below it without points of their own, and of their
 * class: the queue of a batch system that they name (BatchQueue, SlurmPartition and so on). */
enum core_credential {
        CORE_CREDENTIAL_USER,
        CORE_CREDENTIAL_GROUP,
        CORE_CREDENTIAL_ACCOUNT,
        CORE_CREDENTIAL_CLASS,
        CORE_CREDENTIALS
};
/* Sets the points of one user, domain, group or class, before anything is replayed. */
void core_credential_set(struct core *c, enum core_credential what, struct str name, double points);
/* Cost of jobs. Without settings the bank is off: jobs cost nothing, but orders to the bank are still carried
 * out. */
struct core_bank {
        bool refuse;          /* refuse jobs at submit whose account has nothing left */
        bool hold;            /* hold jobs whose account cannot pay; false: they wait */
        bool stop;            /* hold running jobs whose lien cannot be extended; false: they go on */
        bool others_free;     /* jobs without an account cost nothing; false: they are refused */
        bool charge_reserved; /* charge advance reservations with an account as a whole, used or not, and
                                 nothing for their jobs; false: charge jobs as usual */
        bool charge_lost;     /* charge attempts lost with their node; false: they cost nothing */
        int64_t lien_ms;      /* length of a lien for a job that does not state a run time; 0: 1 h */
        const struct core_bank_rate { /* the first rate that fits counts; none fits: no cost */
                struct str place;     /* AGENT or AGENT/QUEUE; empty: all */
                struct str account;   /* an account, with those below it; empty: all */
                struct str charge;    /* an expression over the usage, see drover-bank(1) */
        } * rates;
        size_t rate_count;
};
/* Configures the bank, before anything is replayed. Returns 0; CORE_INVALID with err: an expression. */
int core_bank_set(struct core *c, const struct core_bank *settings, struct err *err);
bool core_bank_is_on(const struct core *c);
struct bank;
/* For reading (bank/bank.h). Valid until the next call of the core. */
const struct bank *core_bank(const struct core *c);
/* Carries out an order and emits its event. *ret_id as in bank_apply. Returns 0, or enum bank_error with
 * err. */
int core_bank_order(struct core *c, const struct bank_order *o, uint64_t *ret_id, struct err *err);
/* Explains an idle job's wait for money in its account. Returns 0 with the text in *ret_why; CORE_UNKNOWN:
 * the job does not wait for money. */
int core_job_money(struct core *c, uint64_t request, uint32_t member, struct err *ret_why);
/* Explains why an idle job will not be paid by the quote that it names. Returns 0 with the text in *ret_why;
 * CORE_UNKNOWN: it names none, or one that can be used at some place. */
int core_job_quote(struct core *c, uint64_t request, uint32_t member, struct err *ret_why);
/* Computes the price of a use. Empty names: none. Returns 0; CORE_INVALID with err: the rate has no value for
 * it. */
struct core_bank_use {
        struct str account, user, place, qos;
        int64_t cpus, memory_mib, gpus, duration_ms;
};
int core_bank_price(struct core *c, const struct core_bank_use *use, int64_t *ret_amount, struct err *err);

/* Sets the lowest number of a new request and the lowest fence of a new attempt, since lower ones may have
 * been given by a server whose records are lost. Not part of the log: to be called at each start. */
void core_numbers_from(struct core *c, uint64_t request, uint32_t fence);
/* To be called after a loss of records: an idle job of a request up to `last` may be running at an agent,
 * under a lease of the lost time that ends within `wait_ms`. Until then no such job is matched. Not part of
 * the log. */
void core_lost(struct core *c, uint64_t last, int64_t wait_ms);
/* Returns how long jobs of this request still wait because of core_lost; 0: they do not. */
int64_t core_lost_wait_ms(const struct core *c, uint64_t request);
/* Sets the time, before the calls of a turn. Durations are counted by the steady clock. The wall clock, which
 * may be set back and forth, is for output, for times of day that users give, and for times that outlive a
 * restart. */
void core_clock(struct core *c, int64_t wall_ms, int64_t steady_ms);

/* ---- users' commands */
/* Accepts a request. If one with this uuid and owner exists, or did until a while ago (forgotten.h), sets
 * *ret_existing and gives its id; CORE_CONFLICT with err: that one has other contents. Returns 0;
 * CORE_INVALID or CORE_TOO_MANY with err (nothing has changed). check_only: checks and
 * changes nothing. */
int core_submit(struct core *c, const struct submission *s, bool check_only, uint64_t *ret_request,
                bool *ret_existing, struct err *err);

enum core_action {
        CORE_ACT_HOLD,
        CORE_ACT_RELEASE,
        CORE_ACT_REMOVE,
        CORE_ACT_VACATE,
        CORE_ACT_CHECKPOINT, /* asks running jobs for a checkpoint, after which they go on */
        CORE_ACT_SUSPEND,
        CORE_ACT_RESUME,
        CORE_ACT_PRIORITY,
        CORE_ACT_SIGNAL, /* sends a signal to the programs of running jobs */
        CORE_ACT_EDIT    /* changes attributes of waiting jobs; see lifecycle/edit.h */
};
#define CORE_SIGNAL_MAX 64
struct core_command {
        enum core_action action;
        uint64_t request;
        const struct set *members; /* NULL: all */
        struct str owner;          /* act only if the request is this owner's; empty: any owner's */
        struct str reason;
        int64_t value;      /* the priority, or the number of the signal, 1 to CORE_SIGNAL_MAX */
        struct str changes; /* packed attributes of an edit (model/edit.h) */
};
/* Acts on the members whose state allows it; *ret_affected counts them. Returns 0, CORE_UNKNOWN,
 * CORE_FORBIDDEN; for an edit also CORE_INVALID and CORE_TOO_MANY: nothing has changed. */
int core_act(struct core *c, const struct core_command *cmd, uint64_t *ret_affected, struct err *err);
/* Adds the idle and held members that were matched before to *to, the caller's. The removal of each writes a
 * row of history. Returns 0, CORE_UNKNOWN. */
int core_members_recorded(struct core *c, uint64_t request, struct set *to);

/* Renews the lease of a request. lease_ms 0: the same term. owner: as in core_act. Returns 0; CORE_UNKNOWN,
 * CORE_FORBIDDEN; CORE_INVALID: the request has no lease, or the lease has ended. */
int core_request_renew(struct core *c, uint64_t request, struct str owner, uint64_t lease_ms,
                       struct err *err);
/* Records that the submitter has the results of those of the members that have ended. *ret_left: number of
 * results still to be taken. Returns 0; CORE_UNKNOWN, CORE_FORBIDDEN. */
int core_results_taken(struct core *c, uint64_t request, struct str owner, const struct set *members,
                       uint64_t *ret_left, struct err *err);
/* To be called when a credential of the request's jobs was added or changed its URLs, with *part 0, and again
 * with the same *part as long as it returns true: numbers their files anew, some at a time. No-op if the jobs
 * name no credentials. */
bool core_request_credentials(struct core *c, uint64_t request, uint32_t *part);

/* ---- agents */
struct core_attempts { /* members of a request with one fence */
        uint64_t request;
        uint32_t fence;
        const struct set *members;
};
/* Begins a session of the agent. Queues that were not offered in the last session are forgotten. */
void core_agent_connected(struct core *c, const char *agent);
/* Limits the labels that the settings clear the agent for to these, comma-separated; empty: no limit. */
void core_agent_labels(struct core *c, const char *agent, struct str labels);
/* An order for an agent's machine, see model/node.h. Failed, down and retired: running jobs are stopped and
 * go back to the queue. If the agent is absent, down and retired state that nothing runs there any more, and
 * no lease is waited for. */
#define CORE_NODE_REASON_MAX 1024u
struct core_node_order {
        const char *agent;
        enum node_state to; /* NODE_UP: the node gets jobs again */
        struct str by, reason;
        int64_t deadline_ms; /* end of a drain, when jobs that still run go back to the queue; 0: none */
};
/* Carries out an order. Returns 0, also if the node is in the state; CORE_UNKNOWN, CORE_INVALID with err.
 * NODE_BOOTING creates the record of an unknown node. */
int core_node_set(struct core *c, const struct core_node_order *o, struct err *err);
/* Records that a provisioner is about to start a machine for a new or retired node, which boots from now on.
 * The machine's cost counts in the month. Returns 0; CORE_INVALID with err: the node is in another state. */
int core_node_launch(struct core *c, const char *agent, const struct node_instance *i, struct err *err);
/* Updates the record of that machine and its cost. Returns 0; CORE_UNKNOWN: no machine was started for the
 * node. */
int core_node_instance(struct core *c, const char *agent, const struct node_instance *i);
/* Returns the amount spent in this month, in millionths. */
int64_t core_spent_micro(const struct core *c);
/* Reports the result of the agent's health check, with the reason of a failure. */
void core_node_health(struct core *c, const char *agent, bool well, struct str reason);
/* Reports the agent's description of its machine: lines of "name=value". */
void core_node_facts(struct core *c, const char *agent, struct str facts);
/* Returns whether an event, an offer or a session has named the agent. */
bool core_agent_known(struct core *c, const char *agent);
void core_agent_away(struct core *c, const char *agent); /* withdraws its offers; its leases go on */
/* Reports all attempts of an agent after it has connected. Attempts that the core has at this agent and that
 * are not listed are lost. Listed ones that the core does not have are passed to `stale`, to be killed.
 * Renews the agent's leases. */
void core_inventory(struct core *c, const char *agent, const struct core_attempts *has, size_t count,
                    void (*stale)(void *arg, uint64_t request, uint32_t fence, const struct set *members),
                    void *arg);
/* Renews the leases of all attempts of the agent. */
void core_renew(struct core *c, const char *agent);
/* Reports a renewal acknowledged at that time of the steady clock; no-op if a later one is known. */
void core_heard(struct core *c, const char *agent, int64_t steady_ms);
/* Returns whether this agent has the attempt, and it is the job's last. Other reports of an agent about an
 * attempt are ignored; the calls below check this themselves. */
bool core_has_attempt(struct core *c, const char *agent, uint64_t request, uint32_t member, uint32_t fence);
/* Returns whether the agent has an attempt of this part of the request; CORE_PART_ANY: of any part. */
#define CORE_PART_ANY UINT32_MAX
bool core_has_part(struct core *c, const char *agent, uint64_t request, uint32_t part);

/* Preference of an offer among jobs that are equal in the order. */
enum core_wish { CORE_WISH_NONE, CORE_WISH_SMALL_INPUT, CORE_WISH_SHORT_RUN, CORE_WISH_LARGE_MEMORY };
#define CORE_WISHES_MAX 3 /* numbers as in drover.proto */

struct core_offer {
        const char *agent, *queue;
        uint64_t serial;
        struct str ad;            /* new syntax; Cpus, Memory, Disk: what is free */
        uint32_t jobs_max;        /* 0: no jobs now; the ad is kept for explanations */
        const struct str *owners; /* name@domain, *@domain, or "!name@domain why not"; empty: anybody's */
        size_t owner_count;
        struct str filesystem_domain, hostname; /* set in the ad where it has none */
        struct str tags; /* the ad's Tags are reduced to these, comma-separated; empty: all remain */
        struct str
                most; /* the ad's numbers, and their totals, are reduced to these; base/job/offer_limit.h */
        const char *closed; /* reason why the queue takes no jobs, whatever it offers; NULL: it takes jobs */
        enum core_wish wishes[CORE_WISHES_MAX]; /* most important first, followed by CORE_WISH_NONE */
};
/* Limits of one agent's offers; further ones are refused. */
#define CORE_QUEUES_MAX   512u         /* queues of any name since the server started */
#define CORE_AD_BYTES_MAX (512u << 10) /* text of one ad */
#define CORE_ADS_MAX      (8u << 20)   /* text of all its ads */
#define CORE_NAMES_MAX    20000u       /* attribute names that no one had used before */
/* Accepts an offer. Returns 0; CORE_INVALID with err: the ad cannot be read, or the agent exceeds a limit. */
int core_offer(struct core *c, const struct core_offer *o, struct err *err);
/* Withdraws the queue's offer; attempts go on. */
void core_withdraw(struct core *c, const char *agent, const char *queue);

/* Reports attempts that the agent has accepted. Repetitions and unknown attempts are ignored. */
void core_accepted(struct core *c, const char *agent, const struct core_attempts *a);
/* Reports refused attempts. hold_code nonzero: the jobs can never run as they are. */
void core_refused(struct core *c, const char *agent, const struct core_attempts *a, struct str reason,
                  int hold_code);
/* Reports attempts that have started at that time by the agent's clock; repetitions are ignored. */
void core_started(struct core *c, const char *agent, const struct core_attempts *a, int64_t at_ms);

struct core_result {
        uint64_t request;
        uint32_t member, fence;
        enum core_outcome outcome;
        bool signaled;
        int32_t exit_code;
        int64_t started_ms, ended_ms, cpu_user_ms, cpu_system_ms;
        uint64_t memory_peak_bytes, bytes_in, bytes_out;
        uint64_t bytes_freed; /* of files that a placement job has removed */
        uint64_t energy_uj;   /* microjoules; 0: not measured */
        int32_t hold_code, hold_subcode;
        struct str reason;
        struct str outputs; /* packed: count, then name, 32 bytes of sha256, size, mode for each */
        bool checkpoint;    /* with KILLED: the outputs are a checkpoint */
};
/* Reports the result of an attempt. Returns true if it was accepted; false: the attempt is not the job's any
 * more, and nothing has changed. In both cases the agent may forget the attempt once the events so far are
 * durable. */
bool core_result(struct core *c, const char *agent, const struct core_result *r);
/* Reports a checkpoint, in `outputs`, of an attempt that goes on. Returns false: the attempt is not the job's
 * any more. */
bool core_checkpoint(struct core *c, const char *agent, const struct core_result *r);
/* Returns whether the file is part of a checkpoint of a job that this agent has. */
bool core_checkpoint_has(struct core *c, const char *agent, uint64_t request, const unsigned char sha256[32]);

/* ---- requests of an attempt's program (lifecycle/chirp.c), if the job's author has set WantIOProxy */
struct core_attempt {
        uint64_t request;
        uint32_t member, fence;
};
/* Returns whether programs of the part may make requests. ret_streams: whether their stdout and stderr are to
 * be in the output files while they run. */
bool core_chirp_allowed(struct core *c, uint64_t request, uint32_t part, bool ret_streams[2]);
/* Checks that this agent has the attempt, and that its program may make requests. Returns 0; CORE_UNKNOWN,
 * CORE_FORBIDDEN with err. */
int core_chirp_check(struct core *c, const char *agent, const struct core_attempt *at, struct err *err);
/* Sets the attribute to this text, a ClassAd literal; empty: removes it. Returns 0; as core_chirp_check;
 * CORE_INVALID, CORE_TOO_MANY with err. */
int core_chirp_set(struct core *c, const char *agent, const struct core_attempt *at, struct str name,
                   struct str text, struct err *err);
/* Appends the text of an attribute of the job's ad. Returns 0; as core_chirp_check; CORE_INVALID with err:
 * there is no such attribute. */
int core_chirp_get(struct core *c, const char *agent, const struct core_attempt *at, struct str name,
                   struct buf *to, struct err *err);
/* Adds a line to the job's log. Returns 0; as core_chirp_check; CORE_TOO_MANY with err. */
int core_chirp_remark(struct core *c, const char *agent, const struct core_attempt *at, struct str line,
                      struct err *err);
/* Returns whether programs of the part's jobs may start programs beside those of the other jobs of their set:
 * in universe = parallel. */
bool core_launch_allowed(struct core *c, uint64_t request, uint32_t part);
/* Finds the running attempt at place `node` (from 0) of the gang that the attempt `at` of this agent is in,
 * and has started with. Returns 0, with the agent that has it, valid until the next command; CORE_UNKNOWN:
 * the agent does not have `at`, or that node does not run; CORE_FORBIDDEN: the job's programs may not;
 * CORE_INVALID: the set has no such node; all with err. */
int core_launch_node(struct core *c, const char *agent, const struct core_attempt *at, uint32_t node,
                     struct core_attempt *ret, const char **ret_agent, struct err *err);

/* ---- time */
/* Matches offers and jobs that changed. Returns whether there is more to do, in a turn that follows at
 * once. */
bool core_match(struct core *c);
/* Ends leases, evaluates periodic policies, files history, forgets old requests: a slice of each. Returns the
 * milliseconds until the next call. */
int64_t core_tick(struct core *c);

/* ---- replay */
int core_replay(struct core *c, struct str record, struct err *err); /* 0, or CORE_DAMAGED, -errno */
void core_snapshot(struct core *c, struct buf *out);
int core_restore(struct core *c, struct str snapshot, struct err *err); /* into a new core */
/* To be called at the end of replay, or after a stop of the process: gives every lease a full term. */
void core_ready(struct core *c);

/* Checks invariants, for tests and `droverd --check`. Returns NULL, or a sentence about the first that does
 * not hold. */
const char *core_check(struct core *c);
/* Returns the memory that the core holds for queued jobs (requests, templates, items, sets), in bytes. */
size_t core_bytes(struct core *c);
