/* query: read access to the core. No call here changes anything.
 *
 * Returned strings and pointers are borrowed until the core changes, unless a comment says otherwise.
 */
#pragma once
#include "core/core.h"
#include "core/model/dependency.h"

struct core_counts {
        /* running: jobs that have started, also suspended and vacating ones; idle: includes jobs whose
         * attempt has not started; completed: includes failed ones. */
        uint64_t jobs, idle, running, held, completed, failed, removed;
        uint64_t waiting; /* idle jobs that wait for other jobs */
        uint64_t handled; /* failed and removed jobs whose failure other jobs of the graph take care of */
        uint64_t left;    /* completed and removed jobs that stay in the queue: LeaveJobInQueue */
};
struct core_request {
        uint64_t id;
        unsigned char uuid[16];
        struct str owner;
        int64_t submitted_ms, finished_ms; /* finished_ms 0: not yet */
        struct core_counts counts;
        size_t part_count;
        bool edited;  /* some of its jobs were edited after the submit */
        bool handles; /* jobs of its graph take care of failures: its counts take time for each failure */
};
/* Gives the counts and times of a request. Returns 0; CORE_UNKNOWN. */
int core_request_get(struct core *c, uint64_t id, struct core_request *ret);
/* Returns the id of the next request; 0: there is none. after 0: the first. */
uint64_t core_request_next(struct core *c, uint64_t after);
/* Returns the id of the previous request; 0: there is none. before 0: the last. */
uint64_t core_request_prev(struct core *c, uint64_t before);
/* Returns the id of the owner's request with this uuid, also when the request itself is forgotten
 * (forgotten.h). 0: none. */
uint64_t core_request_by_uuid(struct core *c, const unsigned char uuid[16], struct str owner);
uint64_t core_request_last(struct core *c); /* highest id given so far */
/* Returns the ad of the part's template; NULL: there is no such part. */
const struct ad *core_request_ad(struct core *c, uint64_t id, uint32_t part);
/* Gives the counts of all requests together. */
void core_totals(struct core *c, struct core_counts *ret);

struct core_job {
        uint64_t request;
        uint32_t member, part;
        enum job_state state;
        uint32_t fence, starts;
        const char *agent, *queue; /* NULL without an attempt */
        const char *last_agent;    /* agent of the previous attempt; NULL: none */
        bool away;                 /* the agent is not connected; the attempt goes on until its lease ends */
        const char *unreachable;   /* why the system behind the queue does not answer; NULL: it answers */
        bool removing;             /* the job is vacating, and will then be removed */
        int64_t submitted_ms, entered_ms, started_ms, ended_ms; /* 0: not yet; entered: the present state */
        bool waits;           /* the job is idle and waits for other jobs: core_job_dependencies */
        bool ended, signaled; /* ended: an attempt has ended with a result; signaled: by a signal */
        int32_t exit_code;
        int32_t hold_code, hold_subcode;
        struct str hold_reason;
        int64_t priority;
        /* with a record (starts, or an attempt) */
        int64_t cpu_user_ms, cpu_system_ms; /* sum over the attempts that have ended */
        const char *account;                /* account that the attempt is charged to; NULL: none */
        uint32_t cpus;                      /* resources of the last attempt */
        uint64_t memory_mib, disk_kib;
        const char *more;      /* countable resources, "GPUs=2 Licence=1"; NULL: none */
        struct str checkpoint; /* packed as a result's outputs; empty: none */
};
/* 0, CORE_UNKNOWN. Completed and removed jobs of a request that is still here have their state only;
 * everything else about them is in history. */
int core_job_get(struct core *c, uint64_t request, uint32_t member, struct core_job *ret);
/* Makes an ad of the member's present attributes, with the template as parent, GlobalJobId and ServerTime.
 * The caller frees it before the core changes. */
struct ad *core_job_ad(struct core *c, uint64_t request, uint32_t member);
/* Does what core_job_ad does, but only these attributes need be there. Much faster where long texts differ
 * from item to item. names NULL: all. */
struct ad *core_job_ad_some(struct core *c, uint64_t request, uint32_t member, const symbol *names,
                            size_t count);
/* Jobs of one kind are those of one part of a request, in one state, without a record of their own; their ads
 * differ only in attributes for which core_job_differs is true. Returns false when the job has a record or
 * does not exist. */
struct core_job_kind {
        uint64_t request;
        uint32_t part;
        enum job_state state;
        const struct ad *template_ad; /* borrowed until the request goes; NULL: the part has ended */
};
bool core_job_kind(struct core *c, uint64_t request, uint32_t member, struct core_job_kind *ret);
/* Returns whether this attribute may differ between jobs of one kind. `ad` is the ad of any one of them. */
bool core_job_differs(const struct core *c, const struct ad *ad, symbol name);
/* What the value of an attribute of such a job depends on: its template alone, whose ad has it, or not; the
 * state too; or the job, or its request. */
enum core_scope { CORE_SCOPE_TEMPLATE, CORE_SCOPE_STATE, CORE_SCOPE_JOB };
enum core_scope core_job_scope(struct core *c, uint64_t request, uint32_t member, symbol name);
/* Appends a job's GlobalJobId: "UUID#7.42#QDATE". */
void core_global_id(struct buf *out, const unsigned char uuid[16], uint64_t request, uint32_t member,
                    int64_t submitted_ms);
/* Adds the members in these states (bits 1u << enum job_state) to *to, the caller's. 0, CORE_UNKNOWN. */
int core_members(struct core *c, uint64_t request, uint32_t states, struct set *to);
/* Adds the members that have ended and stay in the queue, likewise. */
int core_members_left(struct core *c, uint64_t request, struct set *to);
/* Gives what an agent needs to run a member: its item's values (borrowed), its row and its step. 0,
 * CORE_UNKNOWN. */
int core_member_item(struct core *c, uint64_t request, uint32_t member, uint32_t *ret_part, uint32_t *ret_row,
                     uint32_t *ret_step, struct str *values, size_t values_max, size_t *ret_count);
/* Returns the text of a part's late attribute (one with macros of the job); its p is NULL when the attribute
 * is not late. */
struct str core_part_late(struct core *c, uint64_t request, uint32_t part, symbol name);
/* Returns the name of the part's i-th late attribute; 0: there are no more. */
symbol core_part_late_name(struct core *c, uint64_t request, uint32_t part, size_t i);
/* Gives the names of a part's item variables, borrowed. Returns their number. */
size_t core_part_variables(struct core *c, uint64_t request, uint32_t part, char ***ret);
/* Gives the members of a part, [*ret_first, *ret_end). 0, CORE_UNKNOWN. */
int core_part_members(struct core *c, uint64_t request, uint32_t part, uint64_t *ret_first,
                      uint64_t *ret_end);
/* Returns how many steps of evaluations, and of expansions, the core has taken. */
uint64_t core_steps_taken(const struct core *c);
/* Appends a member's text attribute as it was submitted, with macros expanded. 0; CORE_UNKNOWN; CORE_INVALID:
 * there is none, it is no string, it takes more than some 100 steps, or, where to->max is set, it is written
 * in more than twice as many bytes. The result does not change while the job runs. */
int core_member_text(struct core *c, uint64_t request, uint32_t member, symbol name, struct buf *to);
/* Appends a text of the member's template with macros expanded. 0; CORE_UNKNOWN; CORE_INVALID: a macro cannot
 * be expanded. */
int core_member_expand(struct core *c, uint64_t request, uint32_t member, struct str text, struct buf *to);
/* Returns whether a queue of this agent runs this owner's jobs, by its last offer. */
bool core_agent_serves(struct core *c, const char *agent, struct str owner);
/* Gives the files that the submit left in the spool, borrowed while the request exists. 0 or CORE_UNKNOWN. */
int core_request_spooled(struct core *c, uint64_t request, const struct submission_file **ret,
                         size_t *ret_count);

/* Attempts of a job that were lost in a row, see model/losses.h. */
struct core_job_losses {
        /* lost: since the last result or release; most: number at which the job is held. */
        uint32_t lost, most;
        int64_t until_ms; /* the job is not dispatched before, Unix milliseconds; 0: there is no such time */
        bool suspected;   /* the job was lost with so many nodes that it must run alone on one */
        const char *nodes[8];
        size_t node_count;
};
/* Gives a job's losses. Returns 0; CORE_UNKNOWN: its last attempt was not lost. */
int core_job_losses(struct core *c, uint64_t request, uint32_t member, struct core_job_losses *ret);

struct core_log_entry {
        int64_t at_ms;
        enum event_type type;
        uint32_t fence;
        const char *agent, *queue; /* may be NULL */
        int32_t code;
        const char *text; /* may be NULL */
};
typedef void core_log_fn(void *arg, const struct core_log_entry *e);
/* Calls fn for each event of the job, the oldest first; the middle of a long log is dropped. 0 or
 * CORE_UNKNOWN. */
int core_job_log(struct core *c, uint64_t request, uint32_t member, core_log_fn *fn, void *arg);

struct core_queue_view {
        const char *agent, *queue;
        bool connected, offers;
        const char *closed;      /* why the queue takes no jobs; NULL: it takes jobs */
        const char *unreachable; /* as in core_job */
        uint32_t jobs_max;
        const struct ad *ad; /* the last offer, less what was dispatched since; NULL: there was none */
        uint32_t running;    /* attempts that have started and not ended */
        uint32_t attempts;   /* all attempts that it has now */
        int64_t renewed_ms;  /* Unix milliseconds; 0: not since the start */
        uint64_t finished;   /* results taken since the start */
};
/* Calls fn for each queue of each agent, sorted by name. */
void core_queues(struct core *c, void (*fn)(void *arg, const struct core_queue_view *q), void *arg);

struct core_node {
        const char *name, *state_name; /* as in model/node.h, where up is "idle" or "busy" */
        enum node_state state;
        bool connected;
        int64_t since_ms, deadline_ms; /* Unix milliseconds; 0: never ordered into a state; no deadline */
        const char *by, *reason;       /* may be NULL */
        const char *facts;             /* lines of "name=value"; may be NULL */
        bool provisioned;              /* a provisioner has started the machine `instance` for the node */
        struct node_instance instance;
        int64_t boot_ms;     /* duration of the last boot; 0: not known */
        const char *refuses; /* why the node gets no jobs; NULL: it gets jobs */
        uint32_t attempts;
        uint32_t losses;    /* consecutive failures, see model/losses.h */
        int64_t renewed_ms; /* Unix milliseconds; 0: not since the start */
};
/* Gives the record of a node. Returns 0; CORE_UNKNOWN. */
int core_node_get(struct core *c, const char *agent, struct core_node *ret);
/* Calls fn for each node, by name. */
void core_nodes(struct core *c, void (*fn)(void *arg, const struct core_node *n), void *arg);
/* Calls fn for each job that the node should be running. 0, CORE_UNKNOWN. */
int core_node_jobs(struct core *c, const char *agent,
                   void (*fn)(void *arg, uint64_t request, uint32_t member, enum job_state state), void *arg);

/* A walk over the present queues, sorted by their agents' names, in slices, because thousands of queues would
 * delay everything else. The core may change between two calls; queues that are first offered meanwhile are
 * left out. */
struct core_walk;
struct core_walk *core_walk_new(struct core *c);
void core_walk_free(struct core_walk *w); /* on any thread; NULL is fine */
bool core_walk_is_over(const struct core_walk *w);

#define COST_NOWHERE ((int64_t)1 << 52) /* total_ms where a store that the job needs does not answer */

/* Estimated time until a place has a job's result, and its terms; see data/cost.h. */
struct core_cost {
        int64_t wait_ms;  /* until the place has room (0 where it has) and its batch system begins a job */
        int64_t link_ms;  /* for inputs and images under way to places that share its links (cost_class.h) */
        int64_t fetch_ms; /* for inputs that the place does not hold: bytes ÷ bandwidth to their store, and
                             latency; half of it for inputs under way to it (inflight_transfers.h) */
        int64_t image_ms; /* the same for container images */
        int64_t environment_ms; /* for environments that the place does not hold: their bytes at the default
                                   bandwidth of an unmeasured link */
        int64_t run_ms;
        int64_t send_ms;  /* outputs to their store */
        int64_t price_ms; /* the price, times the value of a unit of money to the job (PriceWeight, s) */
        int64_t total_ms;
        uint64_t bytes_in;   /* all inputs, images and environments */
        uint64_t bytes_held; /* of bytes_in, those that the place already holds */
        uint64_t bytes_out;
        uint32_t unsized; /* inputs (not images) of unknown size, or empty */
        double price;     /* of the run, by the place's Price for a processor and an hour */
        bool run_known;
        bool down; /* a store that the job must read or write does not answer there, so the job is not
                      dispatched there */
};

/* A queue's answer to why an idle job does not run there. */
enum core_verdict {
        CORE_FITS, /* both sides agree and there is room: the job is dispatched at the next turn */
        CORE_BUSY, /* both sides would agree if the queue were empty */
        CORE_JOB_REFUSES,
        CORE_QUEUE_REFUSES,
        CORE_OWNER_REFUSED, /* the queue does not run this owner's jobs */
        CORE_AWAY,
        CORE_NOT_OFFERING, /* its pull policy offers nothing now; value, if any: the reason */
        CORE_NOT_CLEARED,  /* value: the labels of the job's data that the agent is not cleared for */
        CORE_UNREACHABLE,  /* value: why the system behind the queue does not answer its agent */
        CORE_STORE_DOWN,   /* clause: the store that the job needs and that does not answer the agent; value:
                              the agent's error; since_ms */
        CORE_VERDICTS
};
struct core_why {
        const char *agent, *queue;
        enum core_verdict verdict;
        struct core_cost cost;    /* with FITS and BUSY: the cost of the place */
        struct str clause, value; /* the first clause that is not true, and its value; OWNER_REFUSED: value is
                                     the agent's reason, if it gave one */
        int64_t since_ms;         /* STORE_DOWN: Unix milliseconds */
        /* With FITS: what decides between places. The job's Rank is compared first, higher is better; then
         * the cost under its policy, lower is better; under passive and the monitors then the turn, lower is
         * better (match/policy.h). */
        double rank, costs[CORE_PLACEMENTS];
        uint64_t turn;
        enum core_placement policy;
};
typedef void core_why_fn(void *arg, const struct core_why *w);
/* Calls fn with the verdict of each queue on an idle job. Returns 0; CORE_UNKNOWN. */
int core_why(struct core *c, uint64_t request, uint32_t member, core_why_fn *fn, void *arg);
/* Does what core_why does for the next `queues` queues of a walk, or fewer if expressions take long. Returns
 * 0; CORE_UNKNOWN: the job does not exist any more. */
int core_why_some(struct core *c, struct core_walk *w, unsigned queues, uint64_t request, uint32_t member,
                  core_why_fn *fn, void *arg);

/* A single change that would let an idle job run, and the number of queues at which it would. */
enum core_change_kind { CORE_CHANGE_JOB_CLAUSE, CORE_CHANGE_QUEUE_CLAUSE, CORE_CHANGE_REQUEST };
struct core_change {
        enum core_change_kind kind;
        struct str text;     /* the clause; or the attribute, "RequestCpus" */
        int64_t asked, most; /* request for a resource: the job's, and the largest that would fit somewhere */
        uint32_t refused;    /* queues at which this clause is not true, or that have less */
        uint32_t alone; /* number of `refused` queues that would take the job if only this were different */
};
/* Collects each clause that is not true somewhere and each request that is too large somewhere, over the
 * queues looked at; at most CORE_WHAT_IF_MAX of them. */
#define CORE_WHAT_IF_MAX 256u
struct core_what_if;
struct core_what_if *core_what_if_new(void);
void core_what_if_free(struct core_what_if *x); /* on any thread; NULL is fine */
/* Looks at the next `queues` queues. Returns 0; CORE_UNKNOWN: the job does not exist any more. */
int core_what_if_look(struct core *c, struct core_what_if *x, struct core_walk *w, unsigned queues,
                      uint64_t request, uint32_t member);
/* Calls fn for each change, those that help at most queues first. */
void core_what_if_tell(struct core_what_if *x, void (*fn)(void *arg, const struct core_change *change),
                       void *arg);

/* One edge of a request's graph, see dependency.h. */
struct core_dependency {
        uint64_t request; /* request of the parents */
        bool all;         /* all jobs of the request are parents */
        struct set members;
        enum dependency_when when;
        uint64_t total, succeeded, failed; /* numbers of parents; removed ones have failed */
        bool satisfied, never;             /* never: the edge can never be satisfied */
};
/* Calls fn for each edge, satisfied or not, that leads to a job with an unsatisfied one; d is borrowed during
 * the call. Returns 0, also if the job waits for nothing; CORE_UNKNOWN. */
int core_job_dependencies(struct core *c, uint64_t request, uint32_t member,
                          void (*fn)(void *arg, const struct core_dependency *d), void *arg);

/* Returns whether all that is left of these requests is held or waits, over any number of edges, for held
 * jobs alone: nothing goes on before a release. *ret_request and *ret_member, only set with true: one of
 * these held jobs, which may belong to another request of the owner. False also if over a thousand requests,
 * or over a hundred thousand edges between requests, would have to be examined. */
bool core_are_stuck(struct core *c, const uint64_t *ids, size_t count, uint64_t *ret_request,
                    uint32_t *ret_member);

/* The gang that a job is in, see gang.h. */
enum core_gang_within { CORE_GANG_ANYWHERE, CORE_GANG_GROUP, CORE_GANG_NODE };
enum core_gang_state {
        CORE_GANG_WAITS,   /* the gang waits for places */
        CORE_GANG_BLOCKED, /* `member` of the gang is held, or has not stopped yet */
        CORE_GANG_MATCHED, /* the gang has places, and waits until all members are accepted */
        CORE_GANG_STARTED,
};
struct core_gang {
        uint32_t first, size; /* members of the gang; a job's node number is its member number less `first` */
        uint32_t left;        /* members that have not ended */
        enum core_gang_within within;
        struct str group_by; /* CORE_GANG_GROUP: the attribute that makes queues a group */
        enum core_gang_state state;
        uint32_t member;        /* BLOCKED: the member that blocks the gang */
        enum job_state blocked; /* BLOCKED: the state of that member */
        bool reserved;          /* each member waits for a place of its own (core/meta/meta.h) */
        /* WAITS, and not reserved: */
        uint64_t places;      /* places for members at present, in one node or group, or in all */
        uint64_t places_ever; /* the same if nothing else ran; 0: no place would take a single member */
        char where[128];      /* the node or group with these places; empty: none, or anywhere */
};
/* Gives the gang of a job. Returns 0; CORE_UNKNOWN: the job is in no gang, or has ended. */
int core_job_gang(struct core *c, uint64_t request, uint32_t member, struct core_gang *ret);

/* Pools of units that running jobs draw on. */
struct core_limit {
        const char *name;
        int64_t max; /* -1: no limit, only counted */
        int64_t used;
        uint64_t waiting; /* idle jobs that the limit kept from being matched in the last pass */
};
/* Calls fn for each limit that is in the settings, in use or waited for, sorted by name. */
void core_limits(struct core *c, void (*fn)(void *arg, const struct core_limit *l), void *arg);
struct core_limit_user {
        const char *owner;
        uint64_t jobs;
        int64_t units;
};
/* Calls fn for each owner with units of a pool, the largest number first. */
void core_limit_users(struct core *c, const char *name,
                      void (*fn)(void *arg, const struct core_limit_user *u), void *arg);
/* Finds the pool that keeps an idle job from starting anywhere now. *ret_units: units that the job draws.
 * Returns 0; CORE_UNKNOWN: there is none. */
int core_job_limit(struct core *c, uint64_t request, uint32_t member, struct core_limit *ret,
                   int64_t *ret_units);
/* Tells of an idle job that as many jobs of its request are under way as may be at once (max_materialize).
 * Returns 0; CORE_UNKNOWN: there may be more. */
int core_job_throttle(struct core *c, uint64_t request, uint32_t member, uint64_t *ret_under_way,
                      uint64_t *ret_most);

/* An account of the tree, and its usage. */
struct core_account {
        const char *path;          /* "physics.cms", "physics.cms/ann@local", "/ann@local" */
        bool user;                 /* a leaf: one user */
        double shares, part;       /* part: of the pool, among accounts with demand; 0: no demand */
        double usage_s;            /* processor-seconds, decayed */
        double mean_cpus;          /* recent mean of processors */
        double cpus;               /* processors that its attempts take now */
        uint64_t running, waiting; /* attempts; idle jobs */
};
/* Calls fn for each account, sorted by path. */
void core_accounts(struct core *c, void (*fn)(void *arg, const struct core_account *a), void *arg);

/* The busy place for which an idle job waits although another one has room, see delay_scheduling.h. */
struct core_better_place {
        const char *agent, *queue;
        int64_t waited_ms, longest_ms; /* how long it has waited, and may wait, for better places */
};
/* Returns 0; CORE_UNKNOWN: the job does not wait for one. */
int core_job_better_place(struct core *c, uint64_t request, uint32_t member, struct core_better_place *ret);

/* Room reserved for an idle job, see reserve.h. */
struct core_reservation {
        const char *agent, *queue;
        size_t queues;    /* number of queues that the reservation includes; agent and queue are the first of
                             them */
        int64_t start_ms; /* Unix milliseconds: expected time at which there is enough room */
        int64_t idle_ms;  /* processor time kept idle for the job so far */
        bool first;       /* the job itself is expected to get the room; false: another job of its class */
};
/* Gives the room reserved for a job. Returns 0; CORE_UNKNOWN: there is none. */
int core_job_reservation(struct core *c, uint64_t request, uint32_t member, struct core_reservation *ret);

/* The components of a job's position in the order: points for each, and their sum. */
struct core_priority {
        const char *account;
        const char *qos; /* NULL: none */
        int64_t job_prio;
        double age_h;      /* since the submit */
        double cpus;       /* processors requested */
        double credential; /* points of its owner, the owner's domain and its account */
        double qos_points, size_points, age_points, user_points, credential_points, fair_share_points, total;
        double waiting_points,
                waiting_h; /* hours since its due time, see precedence.h; negative: not due yet */
        double part, lately_cpus, now_cpus; /* of its account, for fair share */
        uint64_t ahead;                     /* idle jobs before it in the order */
        bool ahead_more;                    /* there are more: only the first 10,000 were counted */
};
/* Gives the position of an idle job. Returns 0; CORE_UNKNOWN: the job is not idle. */
int core_job_priority(struct core *c, uint64_t request, uint32_t member, struct core_priority *ret);

/* ---- when jobs will start and end, see forecast/eta.h */

struct core_eta {                 /* times are Unix milliseconds */
        int64_t start_ms, end_ms; /* 0: not known, or no existing place would take the job */
        /* Run time bounds for a start at start_ms: half of similar jobs have ended by end_ms, nine in ten by
         * end_most_ms. Of a request, these are the bounds of its last job. 0: not known. */
        int64_t end_most_ms;
};
struct core_eta_error { /* errors of the expected start of the last few hundred jobs that have started */
        uint64_t count;
        int64_t median_ms; /* median of the absolute errors */
        /* Accuracy of expected run times of ended jobs, newer ones weighing more: number of jobs, and the
         * parts of them (0 to 1) that ended by the bound for half, and by the bound for nine in ten. */
        double ends, by_half, by_most;
};
/* Brings expected times up to date in slices of at most some milliseconds. Call it in turn after turn until
 * it returns false, then read the times. These were computed after the first call, or are a few seconds old
 * at most and from no time before the job became idle (or 0.2 s after that); jobs that become idle meanwhile
 * have none. *look: 0 before the first call. Concurrent callers share the work. */
bool core_eta_some(struct core *c, uint32_t *look);
/* Gives the times of a job that is idle or has an attempt; other jobs have none. Returns 0; CORE_UNKNOWN. */
int core_eta(struct core *c, uint64_t request, uint32_t member, struct core_eta *ret);
/* Gives the start of the first idle job of a request, and the end of its last job. Returns 0;
 * CORE_UNKNOWN. */
int core_eta_request(struct core *c, uint64_t request, struct core_eta *ret);
/* Gives the accuracy of expected starts and run times so far. */
void core_eta_error(struct core *c, struct core_eta_error *ret);

/* ---- requests that another server hands on, see lifecycle/delegation.h */

/* Longest time that results are held, which is also the longest lease: a submitter who renews the lease but
 * takes nothing must not keep history from being pruned. */
#define RESULTS_HELD_MAX_MS (30 * INT64_C(86400000))
/* Returns the Unix milliseconds before which nobody waits for a result; INT64_MAX: nobody waits for any. */
int64_t core_results_held_since(struct core *c);

struct core_delegation {
        uint64_t lease_ms; /* 0: none */
        int64_t left_ms;   /* remaining time of the lease */
        bool lease_over, hold_results;
        const struct submission_origin *origin; /* borrowed; NULL: submitted by a user directly */
};
/* Gives the terms of a request's delegation. Returns 0; CORE_UNKNOWN. */
int core_request_delegation(struct core *c, uint64_t request, struct core_delegation *ret);
/* Appends the labels of the data of a part's jobs: "a,b". */
void core_part_labels(struct core *c, uint64_t request, uint32_t part, struct buf *out);

/* Appends the names of the credentials that a part's jobs ask for, comma-separated: `credentials`, and
 * HTCondor's `use_oauth_services`. */
void core_credential_names(struct core *c, const struct ad *ad, struct buf *out);
