/* query: looking at the core; nothing changes here.
 *
 * Strings and pointers that are returned are borrowed until the core changes, unless it is said otherwise.
 */
#pragma once
#include "core/core.h"
#include "core/model/dependency.h"

struct core_counts {
        uint64_t jobs, idle, running, held, completed, failed,
                removed;  /* running: every state with an attempt */
        uint64_t waiting; /* of idle, those that wait for other jobs */
        uint64_t handled; /* of failed and removed, those that other jobs of a graph decide about */
        uint64_t left;    /* of completed and removed, those that stay in the queue: LeaveJobInQueue */
};
struct core_request {
        uint64_t id;
        unsigned char uuid[16];
        struct str owner;
        int64_t submitted_ms, finished_ms; /* finished_ms 0: not yet */
        struct core_counts counts;
        size_t part_count;
        bool edited; /* some of its jobs are not as they were submitted */
};
int core_request_get(struct core *c, uint64_t id, struct core_request *ret); /* 0, CORE_UNKNOWN */
uint64_t core_request_next(struct core *c,
                           uint64_t after); /* the next request's id, 0 at the end; start with 0 */
/* Also of one that is forgotten (forgotten.h), which is no request any more. 0: none. */
uint64_t core_request_by_uuid(struct core *c, const unsigned char uuid[16]);
uint64_t core_request_last(struct core *c); /* highest id given so far */
const struct ad *core_request_ad(struct core *c, uint64_t id,
                                 uint32_t part); /* its template; NULL: no such */
void core_totals(struct core *c, struct core_counts *ret);

struct core_job {
        uint64_t request;
        uint32_t member, part;
        enum job_state state;
        uint32_t fence, starts;
        const char *agent, *queue; /* NULL without an attempt */
        const char *last_agent;    /* of the attempt before it, if there was one; else NULL */
        bool away;               /* nothing is heard of that agent; the attempt goes on till its lease ends */
        const char *unreachable; /* what that queue stands on does not answer: why; NULL: it does */
        int64_t submitted_ms, entered_ms, started_ms, ended_ms; /* 0: not yet; entered: into the state */
        bool waits;           /* idle, and for other jobs: core_job_dependencies */
        bool ended, signaled; /* a result was taken before */
        int32_t exit_code;
        int32_t hold_code, hold_subcode;
        struct str hold_reason;
        int64_t priority;
        /* with a record (starts, or an attempt) */
        int64_t cpu_user_ms, cpu_system_ms; /* of the attempts that have ended */
        const char *account;                /* that the attempt is charged to; NULL: none */
        uint32_t cpus;                      /* what the last attempt takes or took */
        uint64_t memory_mib, disk_kib;
        const char *more;      /* countable resources, "GPUs=2 Licence=1"; NULL: none */
        struct str checkpoint; /* packed as a result's outputs; empty: none */
};
/* 0, CORE_UNKNOWN. Completed and removed jobs of a request that is still here have their state only: the rest
 * is in history. Strings are borrowed until the core changes. */
int core_job_get(struct core *c, uint64_t request, uint32_t member, struct core_job *ret);
/* A new ad of the member as it is now, with the template as parent, GlobalJobId and ServerTime; the caller
 * frees it before the core changes. */
struct ad *core_job_ad(struct core *c, uint64_t request, uint32_t member);
/* The same, for who asks for these attributes only: others may be missing. Much faster where long texts
 * differ by item. names NULL: all. */
struct ad *core_job_ad_some(struct core *c, uint64_t request, uint32_t member, const symbol *names,
                            size_t count);
/* Jobs of a request that are of one kind have ads that differ only in the attributes that core_job_differs
 * names: those of one part, in one state, of which nothing is recorded. False: of this one there is a record,
 * or there is no such job. */
bool core_job_kind(struct core *c, uint64_t request, uint32_t member, uint64_t *ret_kind);
/* May this attribute be another one in the ad of another job of the same kind? `ad` is the ad of one of them.
 */
bool core_job_differs(const struct core *c, const struct ad *ad, symbol name);
/* What GlobalJobId is: "UUID#7.42#QDATE". */
void core_global_id(struct buf *out, const unsigned char uuid[16], uint64_t request, uint32_t member,
                    int64_t submitted_ms);
/* The members in a state. *to is empty and the caller's. CORE_UNKNOWN. */
int core_members(struct core *c, uint64_t request, enum job_state state, struct set *to);
/* Those that have ended and stay in the queue, likewise. */
int core_members_left(struct core *c, uint64_t request, struct set *to);
/* What an agent needs to run a member: its item's values (borrowed), its row and step. 0, CORE_UNKNOWN. */
int core_member_item(struct core *c, uint64_t request, uint32_t member, uint32_t *ret_part, uint32_t *ret_row,
                     uint32_t *ret_step, struct str *values, size_t values_max, size_t *ret_count);
/* Part's late text of an attribute, or NULL-p when it is not late. */
struct str core_part_late(struct core *c, uint64_t request, uint32_t part, symbol name);
/* The name of the part's i-th late attribute; 0: it has no more. */
symbol core_part_late_name(struct core *c, uint64_t request, uint32_t part, size_t i);
size_t core_part_variables(struct core *c, uint64_t request, uint32_t part, char ***ret);
/* The members of a part: [*ret_first, *ret_end). 0, CORE_UNKNOWN. */
int core_part_members(struct core *c, uint64_t request, uint32_t part, uint64_t *ret_first,
                      uint64_t *ret_end);
/* A member's text attribute as it was submitted, macros filled in, added to *to. 0; CORE_UNKNOWN;
 * CORE_INVALID when it has none, or it is no string. Looks at nothing that changes as the job goes. */
int core_member_text(struct core *c, uint64_t request, uint32_t member, symbol name, struct buf *to);
/* A text of its template, macros filled in, added to *to. 0; CORE_UNKNOWN; CORE_INVALID: they make no sense.
 */
int core_member_expand(struct core *c, uint64_t request, uint32_t member, struct str text, struct buf *to);
/* Does a queue of this agent, by its last offer, run this owner's jobs? */
bool core_agent_serves(struct core *c, const char *agent, struct str owner);
/* The files that the submit brought by the spool, borrowed while the request is here. 0 or CORE_UNKNOWN. */
int core_request_spooled(struct core *c, uint64_t request, const struct submission_file **ret,
                         size_t *ret_count);

/* Attempts of a job that were lost of late, see model/losses.h. */
struct core_job_losses {
        uint32_t lost, most; /* in a row, since the last result or release; it is held after `most` */
        int64_t until_ms; /* it is given to nobody before, Unix milliseconds; 0: it does not wait for that */
        bool suspected;   /* it was lost with so many nodes that it runs alone on one */
        const char *nodes[8];
        size_t node_count;
};
int core_job_losses(struct core *c, uint64_t request, uint32_t member,
                    struct core_job_losses *ret); /* 0; CORE_UNKNOWN: it was not lost of late */

struct core_log_entry {
        int64_t at_ms;
        enum event_type type;
        uint32_t fence;
        const char *agent, *queue; /* may be NULL */
        int32_t code;
        const char *text; /* may be NULL */
};
typedef void core_log_fn(void *arg, const struct core_log_entry *e);
/* Calls fn for what happened to the job, the oldest first; a long log has lost some of its middle. 0 or
 * CORE_UNKNOWN. */
int core_job_log(struct core *c, uint64_t request, uint32_t member, core_log_fn *fn, void *arg);

struct core_queue_view {
        const char *agent, *queue;
        bool connected, offers;
        const char *closed;      /* it takes no jobs: why; NULL: it does */
        const char *unreachable; /* as in core_job */
        uint32_t jobs_max;
        const struct ad *ad; /* as offered, less what was given; NULL: none was ever offered */
        uint32_t running;    /* attempts that were started */
        uint32_t attempts;   /* that it has now */
        int64_t renewed_ms;  /* Unix milliseconds; 0: not since the start */
        uint64_t finished;   /* results taken since the start */
};
/* Calls fn for each queue of each agent, sorted by name. */
void core_queues(struct core *c, void (*fn)(void *arg, const struct core_queue_view *q), void *arg);

struct core_node {
        const char *name, *state_name; /* as model/node.h has it, up as "idle" or "busy" */
        enum node_state state;
        bool connected;
        int64_t since_ms, deadline_ms; /* Unix milliseconds; 0: nothing was said of it; no deadline */
        const char *by, *reason;       /* may be NULL */
        const char *facts;             /* lines of "name=value"; may be NULL */
        bool provisioned;              /* a provisioner has started a machine for it: instance */
        struct node_instance instance;
        int64_t boot_ms;     /* that it took to boot, the last time; 0: not known */
        const char *refuses; /* why it is given no jobs; NULL: it is */
        uint32_t attempts;
        uint32_t losses;    /* failures in a row, see model/losses.h */
        int64_t renewed_ms; /* Unix milliseconds; 0: not since the start */
};
int core_node_get(struct core *c, const char *agent, struct core_node *ret); /* 0, CORE_UNKNOWN */
/* Calls fn for each node, by name. */
void core_nodes(struct core *c, void (*fn)(void *arg, const struct core_node *n), void *arg);
/* Calls fn for what it should be running. 0, CORE_UNKNOWN. */
int core_node_jobs(struct core *c, const char *agent,
                   void (*fn)(void *arg, uint64_t request, uint32_t member, enum job_state state), void *arg);

/* A walk over the queues that there are, sorted by their agents' names, some at a time: thousands of them
 * would hold up everybody else. Other things may happen in between; queues that come meanwhile are not in it.
 */
struct core_walk;
struct core_walk *core_walk_new(struct core *c);
void core_walk_free(struct core_walk *w); /* on any thread; NULL is fine */
bool core_walk_is_over(const struct core_walk *w);

#define COST_NOWHERE ((int64_t)1 << 52) /* total_ms where a store does not answer that the job needs */

/* What it would take to have a job's result from a place, see data/cost.h. */
struct core_cost {
        int64_t wait_ms; /* until the place has room, 0 where it has; and its batch system begins a job */
        int64_t link_ms; /* for inputs and images on their way over the links of places like it (cost_class.h)
                          */
        int64_t fetch_ms; /* inputs that it does not hold: bytes ÷ bandwidth to their store, and latency;
                             half of it for those on their way to it (inflight_transfers.h) */
        int64_t image_ms; /* the same for container images */
        int64_t environment_ms; /* to make environments that it does not hold: their bytes at the pace of a
                                   link that nobody has measured */
        int64_t run_ms;
        int64_t send_ms;  /* outputs to their store */
        int64_t price_ms; /* the price, times what the job says a unit of money is worth (PriceWeight, s) */
        int64_t total_ms;
        uint64_t bytes_in;   /* of its inputs, images and environments, those that are held included */
        uint64_t bytes_held; /* of these, at the place already */
        uint64_t bytes_out;
        uint32_t
                unsized; /* inputs, no images, of which nobody knows how large they are, or which are empty */
        double price;    /* of the run, by the place's Price for a processor and an hour */
        bool run_known;
        bool down; /* a store that it must read or write does not answer from there: it gets no such job */
};

/* Why an idle job is not running: what each queue says. */
enum core_verdict {
        CORE_FITS, /* both sides agree and there is room: it will be given at the next turn */
        CORE_BUSY, /* both sides would agree if the queue had nothing else to do */
        CORE_JOB_REFUSES,
        CORE_QUEUE_REFUSES,
        CORE_OWNER_REFUSED, /* the queue does not run this owner's jobs */
        CORE_AWAY,
        CORE_NOT_OFFERING, /* its pull policy offers nothing now; or, with a value, that is why */
        CORE_NOT_CLEARED,  /* value: the labels of the job's data that the agent is not cleared for */
        CORE_UNREACHABLE,  /* value: why; its agent is there, but not what the queue stands on */
        CORE_STORE_DOWN,   /* clause: the store that the job needs and that does not answer the agent; value:
                              what   it saw, since_ms */
};
struct core_why {
        const char *agent, *queue;
        enum core_verdict verdict;
        struct core_cost cost;    /* with FITS and BUSY: what it would take to have the result from there */
        struct str clause, value; /* the first clause that is not true, and what it gave; OWNER_REFUSED: value
                                     is why, if the agent has said so */
        int64_t since_ms;         /* STORE_DOWN: Unix milliseconds */
};
typedef void core_why_fn(void *arg, const struct core_why *w);
int core_why(struct core *c, uint64_t request, uint32_t member, core_why_fn *fn, void *arg);
/* The same of the next so many queues of a walk, or fewer when expressions take long. 0; CORE_UNKNOWN: the
 * job is not there any more. */
int core_why_some(struct core *c, struct core_walk *w, unsigned queues, uint64_t request, uint32_t member,
                  core_why_fn *fn, void *arg);

/* Which single change would let an idle job run, and at how many of the queues that are there. */
enum core_change_kind { CORE_CHANGE_JOB_CLAUSE, CORE_CHANGE_QUEUE_CLAUSE, CORE_CHANGE_REQUEST };
struct core_change {
        enum core_change_kind kind;
        struct str text;     /* the clause; or the attribute, "RequestCpus" */
        int64_t asked, most; /* of a request: what the job asks for, and the most that would do */
        uint32_t refused;    /* queues at which this clause is not true, or that have less */
        uint32_t alone;      /* of these, those that would take the job if only this were different */
};
/* Each clause that is not true somewhere, and each request that is too large somewhere, of the queues that
 * were looked at; at most CORE_WHAT_IF_MAX of them. */
#define CORE_WHAT_IF_MAX 256u
struct core_what_if;
struct core_what_if *core_what_if_new(void);
void core_what_if_free(struct core_what_if *x); /* on any thread; NULL is fine */
/* Looks at the next so many queues. 0; CORE_UNKNOWN: the job is not there any more. */
int core_what_if_look(struct core *c, struct core_what_if *x, struct core_walk *w, unsigned queues,
                      uint64_t request, uint32_t member);
/* Those that would help at most queues come first. */
void core_what_if_tell(struct core_what_if *x, void (*fn)(void *arg, const struct core_change *change),
                       void *arg);

/* One edge of a request's graph, see dependency.h. */
struct core_dependency {
        uint64_t request; /* of those that it waits for */
        bool all;         /* they are all jobs of it */
        struct set members;
        enum dependency_when when;
        uint64_t total, succeeded, failed; /* of them; removed ones have failed */
        bool satisfied, never;             /* never: it cannot be any more */
};
/* Calls fn for each edge that leads to an idle or held job and is still looked at; d is borrowed during the
 * call. 0, also when it waits for nothing; CORE_UNKNOWN. */
int core_job_dependencies(struct core *c, uint64_t request, uint32_t member,
                          void (*fn)(void *arg, const struct core_dependency *d), void *arg);

/* The set that a job starts together with, see gang.h. */
enum core_gang_within { CORE_GANG_ANYWHERE, CORE_GANG_GROUP, CORE_GANG_NODE };
enum core_gang_state {
        CORE_GANG_WAITS,   /* for places */
        CORE_GANG_BLOCKED, /* `member` of it is held, or has not stopped yet */
        CORE_GANG_MATCHED, /* it has places, and waits until all members were accepted */
        CORE_GANG_STARTED,
};
struct core_gang {
        uint32_t first, size; /* its members; the job's node is its own number less `first` */
        uint32_t left;        /* of them, not ended */
        enum core_gang_within within;
        struct str group_by; /* CORE_GANG_GROUP: the attribute that makes queues a group */
        enum core_gang_state state;
        uint32_t member;        /* BLOCKED: who keeps it */
        enum job_state blocked; /* and how */
        /* WAITS: */
        uint64_t places;      /* for members, now and at once, in one node or group or all together */
        uint64_t places_ever; /* if nothing else ran; 0: no place would take a single member */
        char where[128];      /* the node or group that has them; empty: none, or anywhere */
};
int core_job_gang(struct core *c, uint64_t request, uint32_t member,
                  struct core_gang *ret); /* 0; CORE_UNKNOWN: it is in none, or has ended */

/* Pools of units that running jobs draw on. */
struct core_limit {
        const char *name;
        int64_t max; /* -1: it is only counted */
        int64_t used;
        uint64_t waiting; /* idle jobs that would be matched but for it, as of the last pass */
};
/* Calls fn for each that is in the settings, in use or waited for, sorted by name. */
void core_limits(struct core *c, void (*fn)(void *arg, const struct core_limit *l), void *arg);
struct core_limit_user {
        const char *owner;
        uint64_t jobs;
        int64_t units;
};
/* Who has units of a pool, the one with the most first. */
void core_limit_users(struct core *c, const char *name,
                      void (*fn)(void *arg, const struct core_limit_user *u), void *arg);
/* The pool that keeps an idle job from starting anywhere now. 0; CORE_UNKNOWN when there is none. *ret_units:
 * how many it draws. */
int core_job_limit(struct core *c, uint64_t request, uint32_t member, struct core_limit *ret,
                   int64_t *ret_units);

/* The tree of accounts, and what each has had. */
struct core_account {
        const char *path;    /* "physics.cms", "physics.cms/ann@local", "/ann@local" */
        bool user;           /* a leaf: one user */
        double shares, part; /* part: of the pool, among those that want something now; 0: it wants nothing */
        double usage_s;      /* processor-seconds, decayed */
        double mean_cpus;    /* processors of late */
        double cpus;         /* that its attempts take now */
        uint64_t running, waiting; /* attempts; idle jobs */
};
void core_accounts(struct core *c, void (*fn)(void *arg, const struct core_account *a),
                   void *arg); /* by path */

/* Room that is kept for an idle job, see reserve.h. */
struct core_reservation {
        const char *agent, *queue;
        size_t queues;    /* that it is for; that one is the first of them */
        int64_t start_ms; /* Unix milliseconds: when there should be enough */
        int64_t idle_ms;  /* processor time that was kept idle for it until now */
        bool first; /* the job is the one that will have it, as it looks now; false: another of its kind */
};
int core_job_reservation(struct core *c, uint64_t request, uint32_t member,
                         struct core_reservation *ret); /* 0; CORE_UNKNOWN: none */

/* What a job's place in the order is made of: points by each, and their sum. */
struct core_priority {
        const char *account;
        const char *qos; /* NULL: none */
        int64_t job_prio;
        double age_h; /* since the submit */
        double cpus;  /* that it asks for */
        double qos_points, size_points, age_points, user_points, fair_share_points, total;
        double part, lately_cpus, now_cpus; /* of its account: what fair share looks at */
        uint64_t ahead;                     /* idle jobs that go before it */
        bool ahead_more;                    /* there are more: those of the first 10,000 were counted */
};
int core_job_priority(struct core *c, uint64_t request, uint32_t member,
                      struct core_priority *ret); /* 0; CORE_UNKNOWN: not idle */

/* ---- when jobs will start and end, see forecast/eta.h */

struct core_eta {                 /* Unix milliseconds */
        int64_t start_ms, end_ms; /* 0: nobody knows; no place there is would take it */
        /* Of a job that starts at start_ms: half of those like it are over by end_ms, nine in ten by
         * end_most_ms. 0: nobody knows; of a request always. */
        int64_t end_most_ms;
};
struct core_eta_error { /* of jobs that have started, the last few hundred */
        uint64_t count;
        int64_t median_ms; /* of the differences, without regard to their sign */
        /* Of the run times that were expected of jobs that have ended, newer ones weighing more: how many,
         * and the parts of them (0 to 1) that ended by the time that half, and nine in ten, were said to. */
        double ends, by_half, by_most;
};
/* For who wants new times: call it in turn after turn until it says false, then ask for them. What is known
 * by then was found since the first call, or is a few seconds old at most and from no time before the job
 * became idle (or 0.2 s after that); only of jobs that become idle meanwhile nothing is known yet. *look: 0
 * before the first call. Each call is a slice of at most some milliseconds; two who look at a time share the
 * work. */
bool core_eta_some(struct core *c, uint32_t *look);
/* Of an idle job, or of one that has an attempt. 0; CORE_UNKNOWN. Other jobs have no times. */
int core_eta(struct core *c, uint64_t request, uint32_t member, struct core_eta *ret);
/* Of a request: when the first of its idle jobs starts, and when the last of its jobs has ended. */
int core_eta_request(struct core *c, uint64_t request, struct core_eta *ret);
void core_eta_error(struct core *c, struct core_eta_error *ret);

/* ---- requests that another server hands on, see lifecycle/delegation.h */

/* Results are held for so long at most, as leases are no longer: who renews his lease and takes nothing keeps
 * nobody's history from being pruned. */
#define RESULTS_HELD_MAX_MS (30 * INT64_C(86400000))
/* Unix milliseconds before which nobody waits for a result; INT64_MAX: nobody waits for any. */
int64_t core_results_held_since(struct core *c);

struct core_delegation {
        uint64_t lease_ms; /* 0: none */
        int64_t left_ms;   /* of the lease */
        bool lease_over, hold_results;
        const struct submission_origin *origin; /* borrowed; NULL: a user's own */
};
int core_request_delegation(struct core *c, uint64_t request,
                            struct core_delegation *ret); /* 0, CORE_UNKNOWN */
/* Adds the labels of the data of a part's jobs: "a,b". */
void core_part_labels(struct core *c, uint64_t request, uint32_t part, struct buf *out);

/* Adds the names of the credentials that a part's jobs ask for, parted by commas: `credentials`, and
 * HTCondor's `use_oauth_services`. */
void core_credential_names(struct core *c, const struct ad *ad, struct buf *out);
