/* core: the scheduler, as a pure state machine.
 *
 * It keeps requests, jobs, classes, agents and their offers, and decides. It does no I/O, reads no clock and
 * no random source: the server tells it the time (core_clock) and what arrived; it tells the world (struct
 * core_world) what has happened (events, history rows: to be made durable) and what is to be done
 * (assignments, controls: to leave only once the events before them are durable). The simulator gives it
 * another world; the code is the same.
 *
 * All calls are made on one thread. Outputs come during the call that caused them. After the calls of a turn,
 * core_match looks for work for the offers that changed. Times named at_ms are Unix milliseconds; leases are
 * counted on the second clock, which never jumps.
 */
#pragma once
#include "bank/order.h"
#include "base/err.h"
#include "base/file_key.h"
#include "base/past_job.h"
#include "base/set.h"
#include "classad/eval.h"
#include "core/data/data.h"
#include "core/model/event.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/submission.h"

/* What one evaluation of a user's expression may take, since the queue waits for it: steps (some
 * milliseconds), and bytes. */
#define CORE_EVAL_STEPS_MAX 20000u
#define CORE_EVAL_BYTES_MAX (4u << 20)

/* Positive results of core calls. */
enum core_error {
        CORE_UNKNOWN = 1, /* no such request or job */
        CORE_INVALID,     /* what was asked makes no sense: err says why */
        CORE_FORBIDDEN,   /* not yours */
        CORE_DAMAGED,     /* an event or snapshot that cannot be: err names it */
        CORE_CONFLICT,    /* a uuid that was used for something else */
        CORE_TOO_MANY,    /* the owner has as much in the queue as he may have: err says what to do */
};

enum core_outcome { /* how an attempt ended; the numbers are those of drover.proto */
                    CORE_EXITED,
                    CORE_NOT_STARTED,
                    CORE_STAGING_FAILED,
                    CORE_LIMIT_EXCEEDED,
                    CORE_KILLED,
                    CORE_OUTCOME_LOST,
};

/* as in drover.proto */
enum core_control {
        CORE_REMOVE,
        CORE_HOLD,
        CORE_VACATE,
        CORE_SUSPEND,
        CORE_RESUME,
        CORE_CHECKPOINT = 10,
        CORE_SIGNAL = 256
}; /* CORE_SIGNAL + its number */

/* Hold codes of HTCondor's manual that Drover gives itself. */
enum core_hold_code {
        CORE_HOLD_UNSPECIFIED = 0, /* as there for $$() that cannot be filled in */
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
        CORE_HOLD_DEPENDENCY = 1001, /* Drover's own: what it waits for did not end as it should */
        CORE_HOLD_LOST = 1002,       /* and: too many of its attempts were lost with their nodes */
        CORE_HOLD_BANK = 1003,       /* and: its account in the bank cannot pay for it */
};

/* What is to be run where: one group of members of one part under one fence. Borrowed during the call. */
struct core_assignment {
        const char *agent, *queue;
        uint64_t serial; /* of the offer that it answers */
        uint64_t request;
        uint32_t part;
        uint32_t fence;
        const struct set *members;
        uint64_t lease_ms;
        struct str values; /* what the place fills in, packed: see fill.h */
        bool restarts;     /* some of them may have a checkpoint */
        /* Of a set's members: they wait for the world's go. */
        uint32_t gang_first, gang_size; /* its members are [first, first + size); size 0: no set */
        struct str gang_machines; /* their machines in that order, commas between; empty: too long to say */
};

struct bank_entry;
struct core_world {
        void *arg;
        void (*event)(void *arg, const struct event *e);      /* pack it now; it is borrowed */
        void (*history)(void *arg, const struct past_job *p); /* a row for history, same commit */
        void (*keep)(void *arg, uint64_t request,
                     struct str record);             /* store the request's record, same commit */
        void (*forget)(void *arg, uint64_t request); /* delete it, same commit */
        void (*assign)(void *arg, const struct core_assignment *a);
        void (*control)(void *arg, const char *agent, enum core_control what, uint64_t request,
                        uint32_t fence, const struct set *members);
        /* For replay: the request's record. 0 or an error. */
        int (*load)(void *arg, uint64_t request, struct buf *ret, struct err *err);
        /* May be NULL: an event of the log has been applied (core_replay). */
        void (*replayed)(void *arg, const struct event *e);
        /* May be NULL where there are no sets: these, which wait for it, may start. Said again whenever the
         * agent may not have heard. */
        void (*go)(void *arg, const char *agent, uint64_t request, uint32_t fence, const struct set *members);
        /* May be NULL: nobody has any. What the credential `ret->name` of the request's jobs is for, as far
         * as there is one: sets urls, borrowed until the core is called again, and s3. `handed_on`: the
         * request is another server's, and has none but those that came with it. When that changes,
         * core_request_credentials. */
        void (*credential)(void *arg, uint64_t request, struct str owner, bool handed_on,
                           struct file_credential *ret);
        /* May be NULL: renewals come by core_renew only. Asked before leases of the agent are ended: when its
         * newest renewal was acknowledged, by the steady clock, if that is after known_ms. Otherwise
         * known_ms, and then no renewal of its session is acknowledged any more. */
        int64_t (*heard)(void *arg, const char *agent, int64_t known_ms);
        /* May be NULL: a movement of the bank, to be kept for statements in the same commit. */
        void (*movement)(void *arg, const struct bank_entry *e);
};

/* How a place is chosen for a job. All but the first are there to be compared with it. */
enum core_placement {
        CORE_PLACE_COST,   /* the least estimated time to the result; a job may wait for a better place */
        CORE_PLACE_BLIND,  /* as if nothing were known of data */
        CORE_PLACE_FIFO,   /* jobs in the order they came, each to the free place of least cost */
        CORE_PLACE_CACHED, /* the place that holds most of the job's bytes, whatever else it costs */
};

struct share_config {
        int64_t half_life_ms;       /* 0: a week */
        int64_t memory_per_cpu_mib; /* so much memory counts as one processor; 0: memory is not charged */
};

/* What a class's standing is made of, see order.h. */
struct order_weights {
        bool given;        /* false: fair_share and qos 1, the others 0 */
        double fair_share; /* points for each processor of an account, and of the pool's share that is its */
        double qos;        /* for each point of the quality of service */
        double size;       /* for each processor that the job asks for */
        double age;        /* for each hour since the submit */
        double user;       /* for each point of JobPrio, among all users' jobs */
};

struct core_config {
        int64_t lease_ms;                /* default lease; 0: 5 min */
        int64_t lease_margin_ms;         /* the server waits so much longer than the agent; 0: 10 s */
        int64_t periodic_ms;             /* how often periodic policies are evaluated; 0: 20 s */
        int64_t keep_finished_ms;        /* a finished request stays in memory so long; 0: one day */
        uint32_t keep_finished;          /* and at most so many of them; 0: 10,000 */
        uint32_t classes_max;            /* classes of one request; 0: 1,000 */
        uint32_t names_max;              /* attribute names that one owner's jobs have made up; 0: 50,000 */
        uint32_t rekey_slice;            /* parts put into classes at once; 0: 120 */
        uint32_t account_classes_max;    /* classes with idle jobs of one account; 0: 20,000 */
        bool shadow;                     /* only replays, to make snapshots: no matching, no templates */
        uint64_t seed;                   /* of random() in users' expressions */
        uint64_t (*eval_clock_ns)(void); /* see eval.h; NULL: users' expressions end by their steps alone */
        struct share_config share;
        struct order_weights weights;
        int64_t reserve_after_ms; /* a class that was passed over so long gets a reservation; 0: 1 min, -1:
                                     never */
        double reserve_idle;  /* the part of a queue's processors that reservations may keep idle in the long
                                 run; 0: 3 percent */
        int64_t gang_wait_ms; /* all members of a set have accepted by then, or all are freed; 0: 30 s */
        enum core_placement placement;
        uint32_t max_lost;      /* a job is held after so many attempts that were lost in a row; 0: 5 */
        int64_t lost_pause_ms;  /* before the attempt after the second of them, then twice that, ...; 0: 5 s,
                                  -1: no pause */
        bool keep_lossy_nodes;  /* a node that loses one job after the other is not drained */
        int64_t node_silent_ms; /* a node of which nothing was heard for so long has failed; 0: 10 min */
        int64_t better_wait_ms; /* a job waits at most so long for a better place; 0: 5 min, -1: never */
        bool check_choices;     /* every place that is chosen is compared with all others, for core_check */
};

struct core *core_new(const struct core_config *config, const struct core_world *world);
void core_free(struct core *c); /* NULL is fine */
struct symbols *core_symbols(struct core *c);
/* Settings, before anything is replayed: the units of a pool. Names as in limit.h; "user/NAME@DOMAIN" are the
 * running jobs of a user, "queued/NAME@DOMAIN" his jobs in the queue, "queued_kib/NAME@DOMAIN" the KiB that
 * the server keeps of his requests (submission_kib), with a star for the name those of each. */
void core_limit_set(struct core *c, struct str name, int64_t units);
/* A group of accounts, see shares_set_group. 0, CORE_INVALID with err. */
int core_account_set(struct core *c, struct str group, double shares, const struct str *users,
                     size_t user_count, struct err *err);
/* A quality of service, and who may ask for it (nobody named: everybody). */
void core_qos_set(struct core *c, struct str name, double priority, const struct str *users,
                  size_t user_count);
/* What jobs cost. Without it the bank is off: jobs cost nothing, and its orders are carried out all the same.
 */
struct core_bank {
        bool refuse;      /* jobs whose account has nothing left are refused at submit */
        bool hold;        /* jobs whose account cannot pay are held; else they wait */
        bool stop;        /* so are jobs that run, when their lien cannot be extended; else they go on */
        bool others_free; /* jobs without an account cost nothing; else they are refused */
        bool charge_lost; /* attempts that were lost with their node are charged; else they cost nothing */
        int64_t lien_ms;  /* a lien is made for so long, if the job does not say how long it runs; 0: 1 h */
        const struct core_bank_rate { /* the first that fits counts; none: it costs nothing */
                struct str place;     /* AGENT or AGENT/QUEUE; empty: all */
                struct str account;   /* with those below it; empty: all */
                struct str charge;    /* an expression over what was used, see drover-bank(1) */
        } * rates;
        size_t rate_count;
};
/* Settings, before anything is replayed. 0; CORE_INVALID with err: an expression. */
int core_bank_set(struct core *c, const struct core_bank *settings, struct err *err);
bool core_bank_is_on(const struct core *c);
struct bank;
const struct bank *core_bank(
        const struct core *c); /* to look at: bank/bank.h; until the core is called again */
/* Carries out an order and emits its event. *ret_id as of bank_apply. 0, or enum bank_error with err. */
int core_bank_order(struct core *c, const struct bank_order *o, uint64_t *ret_id, struct err *err);
/* The job is idle and waits until its account has enough: 0, and says so. CORE_UNKNOWN: it does not wait for
 * that. */
int core_job_money(struct core *c, uint64_t request, uint32_t member, struct err *ret_why);
/* What so many processors would cost for so long. Empty names: none. 0; CORE_INVALID with err: the rate has
 * no value for it. */
struct core_bank_use {
        struct str account, user, place;
        int64_t cpus, memory_mib, gpus, duration_ms;
};
int core_bank_price(struct core *c, const struct core_bank_use *use, int64_t *ret_amount, struct err *err);

/* From now on requests get no number below `request` and attempts no fence below `fence`: lower ones may have
 * been given by a server whose records are lost. Not part of the log: to be said at each start. */
void core_numbers_from(struct core *c, uint64_t request, uint32_t fence);
/* Records are lost: a job of a request up to `last` that is idle here may run at an agent that was given it
 * in the lost time, under a lease that has ended `wait_ms` from now. No such job is given to anybody before,
 * nor one that shares a class with it. Not part of the log. */
void core_lost(struct core *c, uint64_t last, int64_t wait_ms);
/* How long a job of this request waits for that yet; 0: it does not. */
int64_t core_lost_wait_ms(const struct core *c, uint64_t request);
/* Before the calls of a turn. Durations are counted by the steady clock; the wall clock, which may be set
 * back and forth, is for what is shown, for what users said a time of day for, and for what outlives a
 * restart. */
void core_clock(struct core *c, int64_t wall_ms, int64_t steady_ms);

/* ---- users' commands */
/* Accepts a request. If one with this uuid (and this owner) is there, or was until a while ago (forgotten.h),
 * *ret_existing is set and that one's id given; CORE_CONFLICT with err: it asked for something else. 0;
 * CORE_INVALID, CORE_FORBIDDEN, CORE_TOO_MANY with err (nothing has changed); `check_only`: checks and
 * changes nothing. */
int core_submit(struct core *c, const struct submission *s, bool check_only, uint64_t *ret_request,
                bool *ret_existing, struct err *err);

enum core_action {
        CORE_ACT_HOLD,
        CORE_ACT_RELEASE,
        CORE_ACT_REMOVE,
        CORE_ACT_VACATE,
        CORE_ACT_CHECKPOINT, /* those that run are asked for a checkpoint, and go on */
        CORE_ACT_SUSPEND,
        CORE_ACT_RESUME,
        CORE_ACT_PRIORITY,
        CORE_ACT_SIGNAL, /* to the programs of those that run */
        CORE_ACT_EDIT    /* attributes of those that wait; see lifecycle/edit.h */
};
#define CORE_SIGNAL_MAX 64
struct core_command {
        enum core_action action;
        uint64_t request;
        const struct set *members; /* NULL: all */
        struct str owner;          /* only if the request is this owner's; empty: whoever's */
        struct str reason;
        int64_t value;      /* priority; a signal's number, 1 to CORE_SIGNAL_MAX */
        struct str changes; /* of an edit: packed attributes (model/edit.h) */
};
/* Does it for those members whose state allows it. *ret_affected counts them. 0, CORE_UNKNOWN,
 * CORE_FORBIDDEN; of an edit CORE_INVALID and CORE_TOO_MANY: nothing has changed. */
int core_act(struct core *c, const struct core_command *cmd, uint64_t *ret_affected, struct err *err);

/* Renews the lease; lease_ms 0: as long as it was. `owner` as in core_act. 0; CORE_UNKNOWN, CORE_FORBIDDEN;
 * CORE_INVALID: it has no lease, or the lease has ended. */
int core_request_renew(struct core *c, uint64_t request, struct str owner, uint64_t lease_ms,
                       struct err *err);
/* The submitter has the results of these members, of those that have ended. *ret_left: how many more it will
 * have. 0; CORE_UNKNOWN, CORE_FORBIDDEN. */
int core_results_taken(struct core *c, uint64_t request, struct str owner, const struct set *members,
                       uint64_t *ret_left, struct err *err);
/* A credential of the request's jobs is there now, or is for other URLs: their files are numbered anew.
 * Nothing happens if they name none. */
void core_request_credentials(struct core *c, uint64_t request);

/* ---- agents */
struct core_attempts { /* members of a request with one fence */
        uint64_t request;
        uint32_t fence;
        const struct set *members;
};
/* Queues that were not offered in the last session are forgotten. */
void core_agent_connected(struct core *c, const char *agent);
/* Only these labels, with commas between, count of those for which the settings clear the agent; empty: all.
 */
void core_agent_labels(struct core *c, const char *agent, struct str labels);
/* What is to become of an agent's machine, see model/node.h. Failed, down and retired: what runs there is
 * stopped and goes back to the queue; if the agent is not there, down and retired say that nothing runs there
 * any more, and no lease is waited for. */
#define CORE_NODE_REASON_MAX 1024u
struct core_node_order {
        const char *agent;
        enum node_state to; /* NODE_UP: it is given jobs again */
        struct str by, reason;
        int64_t deadline_ms; /* of a drain: what runs still at this time goes back to the queue; 0: it may
                                finish */
};
/* 0, also when it is so already; CORE_UNKNOWN, CORE_INVALID with err. NODE_BOOTING makes the record of a node
 * that nothing was heard of yet. */
int core_node_set(struct core *c, const struct core_node_order *o, struct err *err);
/* A provisioner is about to start a machine for the node, which is new, or retired: it boots from now on.
 * What is paid for by it counts in the month. 0; CORE_INVALID with err: the node is something else. */
int core_node_launch(struct core *c, const char *agent, const struct node_instance *i, struct err *err);
/* More is known of that machine, or more was paid for it. CORE_UNKNOWN: none was started for it. */
int core_node_instance(struct core *c, const char *agent, const struct node_instance *i);
/* What was spent in this month, in millionths. */
int64_t core_spent_micro(const struct core *c);
/* The agent's own word: its health check failed, for this reason, or passes. */
void core_node_health(struct core *c, const char *agent, bool well, struct str reason);
/* What it says of its machine: lines of "name=value". */
void core_node_facts(struct core *c, const char *agent, struct str facts);
bool core_agent_known(struct core *c, const char *agent); /* an event, an offer or a session was of it */
void core_agent_away(struct core *c, const char *agent);  /* its offers are gone, its leases go on */
/* The agent's whole truth after a connection: attempts that the core has at this agent and that are in
 * neither list are lost. Those that the core does not have are told to `stale`, to be killed. Renews. */
void core_inventory(struct core *c, const char *agent, const struct core_attempts *has, size_t count,
                    void (*stale)(void *arg, uint64_t request, uint32_t fence, const struct set *members),
                    void *arg);
void core_renew(struct core *c, const char *agent);
/* A renewal was acknowledged at that time of the steady clock; an earlier one than is known changes nothing.
 */
void core_heard(struct core *c, const char *agent, int64_t steady_ms);
/* Does this agent have the attempt, and is it the job's last? Nothing that an agent says of an attempt counts
 * otherwise; the calls below ask by themselves. */
bool core_has_attempt(struct core *c, const char *agent, uint64_t request, uint32_t member, uint32_t fence);
/* Does it have an attempt of this part of the request, or with CORE_PART_ANY of the request? */
#define CORE_PART_ANY UINT32_MAX
bool core_has_part(struct core *c, const char *agent, uint64_t request, uint32_t part);

/* Which jobs an offer would have first, of those between which the order leaves it the choice. */
enum core_wish { CORE_WISH_NONE, CORE_WISH_SMALL_INPUT, CORE_WISH_SHORT_RUN, CORE_WISH_LARGE_MEMORY };
#define CORE_WISHES_MAX 3 /* numbers as in drover.proto */

struct core_offer {
        const char *agent, *queue;
        uint64_t serial;
        struct str ad;            /* new syntax: Cpus, Memory, Disk are what is free */
        uint32_t jobs_max;        /* 0: nothing now, the ad is kept for `why` */
        const struct str *owners; /* name@domain, *@domain, or "!name@domain why not"; empty: anybody's */
        size_t owner_count;
        struct str filesystem_domain, hostname; /* put into the ad where it has none */
        struct str tags;    /* of its Tags only these stay, which have commas between; empty: all */
        const char *closed; /* it takes no jobs, whatever it offers: why; NULL: it does */
        enum core_wish wishes[CORE_WISHES_MAX]; /* the weightier first; behind the last: CORE_WISH_NONE */
};
/* The most that the server keeps of one agent's offers; more is refused. */
#define CORE_QUEUES_MAX   512u         /* of any name since the server started */
#define CORE_AD_BYTES_MAX (512u << 10) /* of the text of one ad */
#define CORE_ADS_MAX      (8u << 20)   /* of all its ads, as text */
#define CORE_NAMES_MAX    20000u       /* of attributes that nobody had used before */
/* 0; CORE_INVALID with err: the ad cannot be read, or the agent has more than it may. */
int core_offer(struct core *c, const struct core_offer *o, struct err *err);
void core_withdraw(struct core *c, const char *agent, const char *queue);

void core_accepted(struct core *c, const char *agent, const struct core_attempts *a);
/* hold_code nonzero: it can never run as it is. */
void core_refused(struct core *c, const char *agent, const struct core_attempts *a, struct str reason,
                  int hold_code);
void core_started(struct core *c, const char *agent, const struct core_attempts *a, int64_t at_ms);

struct core_result {
        uint64_t request;
        uint32_t member, fence;
        enum core_outcome outcome;
        bool signaled;
        int32_t exit_code;
        int64_t started_ms, ended_ms, cpu_user_ms, cpu_system_ms;
        uint64_t memory_peak_bytes, bytes_in, bytes_out;
        int32_t hold_code, hold_subcode;
        struct str reason;
        struct str outputs; /* packed: count, then name, 32 bytes of sha256, size, mode for each */
        bool checkpoint;    /* with KILLED: these are a checkpoint */
};
/* True: taken. False: this attempt is not the job's any more, and nothing has changed. Either way the agent
 * may forget it once what was written so far is durable. */
bool core_result(struct core *c, const char *agent, const struct core_result *r);
/* The attempt has made a checkpoint, in `outputs`, and goes on. False: it is not the job's any more. */
bool core_checkpoint(struct core *c, const char *agent, const struct core_result *r);
/* Is the file part of the checkpoint of a job that this agent has? */
bool core_checkpoint_has(struct core *c, const char *agent, uint64_t request, const unsigned char sha256[32]);

/* ---- time */
/* Offers and jobs that changed meet. True: not all have, call it again in a turn that follows at once. */
bool core_match(struct core *c);
/* Ends leases, evaluates periodic policies, files history, forgets old requests: a slice of each. Returns how
 * long until it wants to be called again, in milliseconds. */
int64_t core_tick(struct core *c);

/* ---- replay */
int core_replay(struct core *c, struct str record, struct err *err); /* 0, or CORE_DAMAGED, -errno */
void core_snapshot(struct core *c, struct buf *out);
int core_restore(struct core *c, struct str snapshot, struct err *err); /* into a new core */
/* Replay is over, or the clock has gone on without us: every lease gets a full term from now on. */
void core_ready(struct core *c);

/* Invariants, for tests and `droverd --check`: NULL, or a sentence about the first that does not hold. */
const char *core_check(struct core *c);
/* Memory that the core holds for queued jobs (requests, templates, items, sets), in bytes. */
size_t core_bytes(struct core *c);
