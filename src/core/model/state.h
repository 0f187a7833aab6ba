/* state: what the core keeps, for the files of core/ only.
 *
 *   core --- requests (by id, in order) --- parts --- template
 *     |         |                             |
 *     |         +-- buckets: the idle members of one class with one priority ---> class
 *     |         +-- jobs: a record for each member that ever had an attempt and has not ended, or is left
 *     |         +-- rare, when there is some: held, completed, removed, failed, unfiled, left; logs, a hop
 *     +--- classes: jobs alike in all that matters for matching; those with idle members stand in the index
 *     +--- agents --- queues: the offer that is parked, and the attempts that it has
 *
 * Requests, buckets, jobs, holds and logs change only in apply*.c, by an event. Offers, leases' clocks and
 * classes are not events: they are made again after a restart.
 */
#pragma once
#include "base/heap.h"
#include "base/map.h"
#include "base/owners.h"
#include "core/core.h"
#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/data/inputs.h"
#include "core/data/label.h"
#include "core/data/profile.h"
#include "core/estimate/estimate.h"
#include "core/fairness/limit.h"
#include "core/fairness/share.h"
#include "core/forecast/eta.h"
#include "core/lifecycle/hop.h"
#include "core/match/index.h"
#include "core/model/amounts.h"
#include "core/model/attributes.h"
#include "core/model/template.h"

struct core_agent;
struct queue;
struct reservation;
struct reserved;
struct request;
struct bucket;

struct joblog_entry {
        int64_t at_ms;
        struct queue *queue; /* NULL: none */
        char *text;          /* NULL: none; owned */
        uint32_t fence;
        int32_t code;
        enum event_type type;
};
struct joblog {
        struct joblog_entry *entries;
        uint32_t count, cap;
        uint32_t dropped; /* entries left out of the middle */
};
#define LOG_ENTRIES_MAX 64u /* of one job; the first half and the newest are kept */

struct job {
        uint32_t member, fence;
        enum job_state state, goal; /* goal: where a vacating job goes */
        uint32_t starts, completions;
        struct request *request;
        struct queue *queue;     /* while it has an attempt */
        struct job *next, *prev; /* attempts of the queue */
        uint32_t cpus;           /* what the attempt takes */
        uint64_t memory_mib, disk_kib, lease_ms;
        struct amounts *more; /* countable resources; owned; NULL: none */
        char *more_text;      /* the same, as in the event */
        int64_t entered_ms, started_ms, first_started_ms, ended_ms, wall_ms, cpu_user_ms, cpu_system_ms;
        int64_t suspended_ms, suspended_at_ms; /* in all; since when, 0: it is not */
        uint64_t memory_peak_bytes;
        uint64_t bytes_in, bytes_out; /* copied to and from it, in all its runs */
        struct queue *last_queue;
        struct draws *draws;          /* of the attempt: units of limits; NULL: none */
        struct account *account;      /* that the attempt is charged to; NULL: none */
        int64_t rate;                 /* at which, in thousandths of a processor */
        uint32_t set_first, set_size; /* of the attempt's set (gang.h); size 0: it has none */
        bool set_goes;                /* it may start */
        bool claims;                  /* all of this is counted */
        bool accepted;                /* the agent knows of the attempt: its offers count it */
        bool unknown;                 /* the agent does not: it is lost with the next slice (leases_end) */
        bool ended, signaled;
        int32_t exit_code;
        int32_t hold_code, hold_subcode;
        char *hold_reason; /* owned; kept for the log after release */
        char *outputs;     /* packed, of the last result; owned */
        size_t outputs_n;
        char *filled; /* packed, what the last place filled in (fill.h); owned */
        size_t filled_n;
        char *checkpoint; /* packed as outputs, the files of the last one; owned; NULL: none */
        size_t checkpoint_n;
        struct joblog log;
};

struct bucket {
        struct heap_node node; /* in its class while it has idle members */
        struct request *request;
        struct class *class;
        int64_t priority;
        double points; /* for it and for its age, see order.h */
        struct set idle;
        struct set *members; /* NULL: all of the request */
        uint32_t part;
        uint32_t eta_pass; /* eta.c: when its idle members will start, the first one and those behind it */
        float eta_step_ms, eta_run_ms;
        int64_t eta_start_ms;
};

struct part {
        struct template *template;
        uint32_t first, count, steps, rows;
        char *items; /* rows of values, behind the request's parts; NULL: none */
        uint32_t items_n;
        uint16_t output_store;       /* its number; sites.store_count: the server's spool */
        bool item_fills;             /* $$() stands in an item */
        uint32_t *row_at;            /* byte offset of every ROW_STRIDEth row; NULL: there are no more rows */
        struct estimate *of_program; /* of the core; NULL in a shadow */
        struct inputs *inputs;       /* files that its members read; NULL: none, or the request has ended */
};
#define ROW_STRIDE 32u

/* Members that were held, released or removed without a record of their own. */
struct hold_group {
        struct set members;
        int64_t at_ms;
        int32_t code, subcode;
        char *reason;
};
struct range_log {
        struct set members;
        struct joblog_entry entry;
};
struct priority_group {
        struct set members;
        int64_t priority;
};

/* A user, one for all of his requests. */
struct owner {
        unsigned refs;
        /* His own; NULL: no request of his was counted yet. */
        struct limit *user, *queued, *queued_kib;
        char name[];
};

/* What most requests do without while they wait: made when the first of it is set (request_rare_make). */
struct request_rare {
        struct set held, completed, removed, failed, unfiled;
        struct set left; /* of completed and removed, those that are still shown (leave.h) */
        int64_t finished_ms;
        struct request *uuid_next; /* with the same hash of it */
        struct hold_group *holds;
        uint32_t hold_count, hold_cap;
        struct range_log *log;
        uint32_t log_count, log_cap;
        struct priority_group *priorities;
        uint32_t priority_count, priority_cap;
        struct idmap *waits; /* members that wait for a better place (better.c); NULL: none */
        struct submission_file *spooled;
        char *spooled_names;
        uint32_t spooled_count;
        struct hop hop;
};

/* There are as many of these as jobs that came alone: each byte counts (core_bytes_per_single_job_request).
 */
struct request {
        uint64_t id;
        unsigned char uuid[16];
        struct owner *owner; /* NULL in a shadow */
        uint64_t digest;     /* of what was submitted; 0: not known */
        int64_t submitted_ms;
        uint32_t count, active,
                running;       /* members; those with an attempt; of these, those that were started */
        uint32_t idle;         /* members */
        uint32_t queued_count; /* members that have not ended, as counted in owner->queued */
        uint32_t part_count;
        struct part *parts;                    /* and the items of all behind them */
        struct bucket **buckets, *only_bucket; /* of one alone the array is only_bucket */
        uint32_t bucket_count, bucket_cap;
        struct idmap *jobs;              /* NULL until there is one */
        struct request_rare *rare;       /* NULL: all of it is empty */
        struct request *next, *prev;     /* by id */
        uint32_t kib;                    /* submission_kib; 0 in a shadow */
        bool periodic, leaves, has_sets; /* some template has such policies, or a LeaveJobInQueue */
};

/* Where a class with idle members stands in the order, or stood; see order.h. */
struct order_mark {
        const struct account *account; /* NULL: no class stood there */
        double own, points;            /* of its standing, what is not its account's */
        uint64_t request;
        int64_t priority;
        uint32_t part;
};

struct class
{
        char *key;
        struct template *template; /* its ad's parent */
        struct ad *ad;
        struct heap buckets; /* those with idle members, the first to go on top */
        uint32_t kib;        /* its ad and key; they count in "queued_kib/OWNER" */
        uint64_t idle;       /* members; the class is ready while there are some */
        unsigned users;      /* buckets that refer to it */
        uint64_t met_at;     /* core.offers_new when it last chose among all offers; 0: it has to again */
        size_t dirty_at;     /* 1-based place in core.dirty: it is to meet every offer; 0: not there */
        struct index_class index;
        bool has_rank;
        bool fixed; /* cpus, memory_mib, disk_kib and `more` are literals */
        struct amounts more;
        int64_t cpus, memory_mib, disk_kib, lease_ms;
        char *owner;
        struct account *account;
        struct class *account_next, *account_prev; /* of it, while this one has idle members */
        struct reservation *reserved;              /* NULL: none */
        int64_t given_ms;                          /* when it was last given something, or became ready */
        int64_t given_before_ms;                   /* the time before that */
        uint64_t reserve_round;                    /* in which a place to keep was looked for last */
        const struct qos *qos;                     /* NULL: none */
        double standing;                           /* see order.h */
        struct draws *draws;                       /* units of limits that each member draws */
        bool draws_vary;                           /* they depend on the place: not in `draws` */
        bool draws_bad;                            /* they are no list of limits */
        struct limit *user;                        /* the owner's attempts */
        struct limit_waiter waits;                 /* for a unit of a limit */
        uint64_t stores; /* of inputs_limited_stores: each member draws a unit of each */
        uint64_t labels; /* of its data: only agents that are cleared for all of them get its jobs */
        int64_t not_before_ms, missed_ms; /* 0: it starts when there is a place (deferral.h) */
        bool asleep;                      /* its time has not come yet */
        bool leaks; /* its outputs would go to where they may not: nobody gets its jobs */
        const struct queue
                *overrun; /* its expressions took too long there: its jobs will be held; NULL: no */
        struct buf overrun_why;
        bool kept_back;                      /* until its account may look at queues again (overrun.h) */
        struct class *gang_next, *gang_prev; /* of those whose members come in sets */
        int64_t gang_due_ms;                 /* its sets are not looked for places before; 0: now */
};

/* A countable resource of which a job was given some; of others the queue's ad says how many it has. */
struct queue_resource {
        symbol name;
        int64_t free, taken; /* taken: by attempts that the agent has not accepted yet */
};

/* A queue that refuses jobs of more classes than this waits for its next offer. */
#define REFUSED_MAX 8u

struct queue {
        char *name;
        struct core_agent *agent;
        struct ad *ad; /* NULL until the first offer */
        uint64_t serial;
        size_t ad_bytes;   /* of the offer's text */
        bool idle_session; /* it was not offered in this session of the agent yet */
        bool offers, job_specific, has_rank;
        size_t changed_at; /* 1-based place in core.changed; 0: not there */
        struct index_queue index;
        uint32_t jobs_left;
        int64_t cpus, memory_mib, disk_kib;   /* free, with what it takes ahead */
        int64_t total_cpus, total_memory_mib; /* INT64_MAX: it does not say */
        int64_t taken_cpus, taken_memory_mib,
                taken_disk_kib; /* by attempts that the agent has not accepted yet */
        uint32_t taken_jobs;
        enum core_wish wishes[CORE_WISHES_MAX];
        uint64_t
                refused[REFUSED_MAX]; /* serials of classes of which it refused a job, until its next offer */
        unsigned refused_count;
        struct queue_resource *resources;
        unsigned resource_count;
        struct owners owners;
        struct reserved *reserved;  /* NULL: nothing is kept there */
        double reserve_owed_ms;     /* processor time that reservations kept idle and that is not made good */
        int64_t reserve_owed_at_ms; /* steady clock: as of then */
        struct order_mark passed;   /* of what it was given to lately, what is furthest back */
        int64_t passed_ms;
        struct job *attempts;
        uint32_t attempt_count, running; /* of these, started */
        uint64_t finished;
        struct estimate_pace pace;
        struct profile *profile; /* NULL: it never had an ad */
        uint64_t seen;           /* the choice in which it was last looked at (places.c) */
        double price, speed;     /* as its ad says; 0: it does not */
        unsigned search_order;   /* likewise; SEARCH_ORDER_NONE */
        double wait_s;     /* of a job at its batch system, as its ad says; 0: none; wait_unknown: a guess */
        int64_t begins_ms; /* when such a job would begin; 0: at once */
        bool wait_unknown; /* one would wait there, and nobody knows how long; its ad says so */
        int64_t *ends;     /* when its attempts will end, see busy.c */
        int64_t ends_at_ms;
        uint32_t ends_count;
        uint32_t promised;       /* jobs that wait for it (better.c) */
        char *closed;            /* it takes no jobs: why, as its ad says; owned; NULL: it does */
        int64_t paused_until_ms; /* its expressions took too long (overrun.h); steady; 0: they did not */
        char *unreachable;       /* what its runner stands on does not answer: why; owned; NULL: it does */
        bool logged;             /* an event named it: it is in snapshots. One that only offered is not */
        struct queue *next;      /* of the agent, by name */
};

struct core_agent {
        char *name;
        uint32_t number; /* from 1, as they were heard of */
        struct queue *queues;
        bool connected;
        int64_t renewed_steady_ms, renewed_wall_ms;
        uint64_t cleared;             /* labels that it is cleared for, see label_cleared */
        char *labels;                 /* it is cleared for these at most, commas between; NULL: no bound */
        size_t queue_count, ad_bytes; /* of all its queues' offers */
        uint32_t names;               /* of attributes that its offers brought and nobody had used before */
        struct agent_data *data;      /* what it holds and measured; NULL: it has not said */
};

struct core {
        uint32_t magic;
        struct core_config config;
        struct core_world world;
        struct symbols *symbols;
        struct attributes attr;
        struct eval eval;
        int64_t now_ms, steady_ms;

        struct idmap *requests;
        struct idmap *uuids; /* a hash of the uuid → request */
        struct forgotten *forgotten;
        struct map *owners; /* of requests: one string each */
        struct request *first, *last;
        struct request
                *rekey_next;    /* that is to be put into classes again, and those behind it; NULL: none */
        struct split *rekeying; /* of the one before it, which is under way; NULL: none is */
        uint64_t keyed;         /* how often it was begun: what was keyed before is stale */
        uint64_t last_id;       /* the highest that was accepted */
        uint64_t draft_id;      /* the highest that a draft has; 0: none */
        uint64_t request_from;  /* no lower number is given, and no lower fence */
        uint32_t fence_from;
        uint64_t lost_last;    /* core_lost: jobs of requests up to this one may run unknown */
        int64_t lost_until_ms; /* steady clock, until then; 0: none do */
        struct core_draft *drafts;
        uint64_t *finished; /* ids in the order in which they finished */
        size_t finished_count, finished_cap;
        bool crowded; /* some owner's requests take more than half of what they may */

        struct map *templates, *classes, *agents;
        struct index *index;
        struct class **dirty; /* have become ready since they last met every offer */
        size_t dirty_count, dirty_cap;
        struct queue **changed; /* offers that are new since they last met every class */
        size_t changed_count, changed_cap;
        bool changed_sorted, dirty_sorted;
        size_t reached_at; /* where give.c goes on to look for buckets whose stores answer */
        uint64_t looks;    /* pairs that were looked at in matching, ever, and what giving is worth */

        uint64_t unfiled; /* members, of all requests */
        size_t deferred;  /* classes that start at a time */
        size_t left;      /* members that have ended and are still shown, see leave.c */
        int64_t leave_due_ms;
        uint64_t leave_request, leave_member; /* where the slice goes on; 0: not under way */
        symbol *significant;                  /* job attributes that agents' expressions look at */
        size_t significant_count, significant_cap;

        struct limits *limits;
        struct limit *some_limit; /* in its line: classes whose limits depend on the place */
        struct shares *shares;
        struct map *qualities;      /* of service, by name */
        struct idmap *gangs;        /* sets that wait for Go → since when; NULL: none */
        struct idmap *gang_todo;    /* sets of which something has changed, see gang.c; NULL: none */
        struct class *gang_classes; /* whose members come in sets */
        struct reservation *reservations;
        uint32_t reservation_count;
        int64_t reserve_due_ms;
        size_t reserve_at;      /* where the next slice of agents begins */
        uint64_t reserve_round; /* every hungry class has one turn in it; 1 and more */
        struct hops hops;
        uint32_t ready_classes; /* with idle members */
        uint32_t wanting;       /* accounts with idle jobs */
        bool order_stale;       /* another account wants something, or one less does */
        int64_t order_refreshed_ms;
        struct account *order_pending; /* whose classes are to be moved */

        struct sites sites;
        bool leaks_wanted;               /* label_hold has something to look at */
        bool any_overrun, any_kept_back; /* overrun_tick has something to do */
        struct idmap *files;       /* file → struct file, those that some agent holds; NULL: none ever */
        struct idmap *coming;      /* the same of those on their way to one (coming.h) */
        struct inputs *filling;    /* those that inputs_fill_slice goes on with */
        struct idmap *wanted[256]; /* file → whose members want it (near.c), by its first byte */
        struct inputs *leaving;    /* of requests that have ended: taken out of `wanted` in slices */
        uint32_t near_count;       /* see near.c */
        struct profile **profiles;
        unsigned profile_count, profile_cap;
        unsigned ordered;      /* of these, with a search order */
        struct map *estimates; /* see estimate.c; NULL: none yet */
        struct estimate everybody;
        struct core_moved moved;
        uint64_t offers_new;     /* offers that came or got room, ever */
        uint64_t choice;         /* of a place; counts */
        uint64_t searches;       /* of places.c, ever */
        uint64_t load_changes;   /* of profile.c, ever */
        bool wrong_choice;       /* by config.check_choices */
        uint64_t passed_over;    /* members that were kept for a better place, ever */
        struct eta *eta;         /* NULL: not needed yet */
        struct eta_play *plays;  /* that are under way */
        uint64_t buckets_filled; /* those that had no idle members and got some, ever */
        int64_t better_due_ms;   /* when those that wait for a better place are looked at; 0: nobody does */

        int64_t lease_due_ms; /* on the second clock: no lease ends before; 0: look */
        int64_t periodic_due_ms;
        uint64_t periodic_steps, periodic_steps_max; /* of the request under way: taken, and to be taken */
        uint64_t periodic_request;                   /* where the slice goes on; 0: not under way */
        uint64_t periodic_begun;                     /* the request that periodic_each is of; 0: of none */
        struct set periodic_each;                    /* its members that are looked at one by one, */
        uint64_t periodic_member;                    /* of which those before this one were */
        struct buf class_key;       /* kept: long ones that come and go would leave holes in the memory */
        uint64_t late_steps;        /* taken by part_expand: what it does counts like steps of evaluations */
        struct request *submitting; /* a draft, while it is accepted: spares loading the record */
        bool replaying;
};
#define CORE_MAGIC 0x44726f76u

/* apply.c: the only way to change what events change: applies the event and tells it to the world. 0. A
 * submit may be refused: CORE_INVALID, CORE_DAMAGED or what the world's load returned, with err. Another
 * event that cannot be applied is a bug of ours, and aborts. */
int core_emit(struct core *c, struct event *e, struct err *err);

/* What its attempt takes of countable resources, as in the event. 0, -EBADMSG. */
int job_set_more(struct core *c, struct job *j, struct str text);

/* request.c */
struct request *request_find(const struct core *c, uint64_t id);
struct request *request_by_uuid(const struct core *c, const unsigned char uuid[16]); /* NULL: there is none */
/* Nobody knows of it, no list, map or limit, until it is shown. */
struct request *request_new(uint64_t id, int64_t at_ms, uint32_t count);
/* What was submitted, in slices: begin, then some until there is no more. */
struct request_loading {
        const struct submission *from; /* borrowed */
        char *room;                    /* for the items of the next part */
        uint32_t part;
        size_t row_at; /* where the next row begins in the part's items */
        uint64_t row;
};
/* 0, or CORE_DAMAGED: it has not as many jobs. */
int request_load_begin(struct core *c, struct request *r, const struct submission *s,
                       struct request_loading *ret, struct err *err);
/* Stops when *budget (as in split.h) is used up. Sets *ret_more. 0, -EINVAL with err. */
int request_load_some(struct core *c, struct request *r, struct request_loading *l, uint32_t *budget,
                      bool *ret_more, struct err *err);
int request_load(struct core *c, struct request *r, const struct submission *s, struct err *err); /* all */
void request_show(struct core *c, struct request *r);
void request_hide(struct core *c, struct request *r); /* no-op when it is not shown */
void request_free(struct core *c, struct request *r);
static inline const char *request_owner(const struct request *r) /* NULL in a shadow */
{
        return r->owner ? r->owner->name : NULL;
}
void request_data_load(struct core *c, struct request *r);         /* what its parts read and write, anew */
void request_inputs_free(struct core *c, struct request *r);       /* nobody asks for its files any more */
struct job *request_job(const struct request *r, uint32_t member); /* NULL: it has no record */
struct job *request_job_make(struct core *c, struct request *r, uint32_t member);
void request_job_drop(struct request *r, struct job *j);
struct part *request_part(const struct request *r, uint32_t member, uint32_t *ret_part);
enum job_state request_state(const struct request *r, uint32_t member);
struct bucket *request_bucket(struct core *c, const struct request *r, uint32_t member);
void request_idle_add(struct core *c, struct request *r, const struct set *members);
void request_idle_remove(struct core *c, struct request *r, const struct set *members);
void request_idle_all(const struct request *r, struct set *to);
bool request_idle_has(const struct request *r, uint32_t member);
void request_buckets_free(struct core *c, struct request *r); /* its members are in no class any more */
/* In place of those that it has; they are copied from the array. */
void request_buckets_set(struct core *c, struct request *r, struct bucket **buckets, uint32_t count);
struct bucket *bucket_new(struct core *c, struct request *r, struct class *k, uint32_t part,
                          int64_t priority); /* of all members, and in no list; takes the reference */
void bucket_free(struct core *c, struct bucket *b);
void request_set_priority(struct core *c, struct request *r, const struct set *members, int64_t priority);
uint64_t request_unended(const struct request *r); /* members that have not ended */
bool request_ended(const struct request *r);

/* draft.c: NULL: it exists already, or was accepted */
struct request *draft_request(const struct core_draft *d);
struct core *draft_core(const struct core_draft *d);

/* rare.c */
extern const struct request_rare request_nothing_rare;
static inline const struct request_rare *request_rare(const struct request *r) /* to look at; never NULL */
{
        return r->rare ? r->rare : &request_nothing_rare;
}
struct request_rare *request_rare_make(struct request *r); /* to change */
void request_rare_trim(struct request *r);                 /* frees it when all of it is empty */
void request_rare_free(struct request *r);
size_t request_rare_bytes(const struct request *r); /* memory it takes */
void request_spooled_load(struct request *r, const struct submission *s);
const struct hold_group *request_hold(const struct request *r, uint32_t member);
void request_hold_drop(struct request *r, const struct set *members);

/* item.c: rows of a part, and a member's own ad */
size_t part_row(const struct part *p, uint64_t row, struct str *values, size_t max);
/* Appends the text with the macros of a member in it filled in, and takes from *left the bytes that were
 * looked at and written: it begins with LATE_TEXT_MAX for all late attributes of a member. The work is
 * counted in core.late_steps. As macro_expand. */
#define LATE_TEXT_MAX (2u << 20)
int part_expand(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                struct str text, size_t *left, struct buf *out, struct err *err);
/* Steps that the core has taken, ever. */
static inline uint64_t core_steps(const struct core *c)
{
        return c->eval.steps_all + c->late_steps;
}
/* As core_member_text, of a request that need not be shown. */
int request_member_text(struct core *c, const struct request *r, uint32_t member, symbol name,
                        struct buf *to);
struct ad *member_ad(struct core *c, const struct request *r, uint32_t member, const struct job *j);
void member_ad_starts(const struct core *c, struct ad *ad, int64_t starts); /* NumJobStarts and its like */

/* class.c */
bool class_is_per_member(struct core *c, const struct template *t);
struct class *class_get(struct core *c, const struct request *r, const struct part *p, uint32_t member);
void class_unref(struct core *c, struct class *k);
void class_bucket_filled(struct core *c, struct bucket *b, uint64_t more);
void class_bucket_drained(struct core *c, struct bucket *b, uint64_t fewer);
void class_bucket_moved(struct core *c, struct bucket *b); /* its place in the order may be another */
struct bucket *class_first_bucket(const struct class *k);  /* of one that has idle members */
/* match.c: at the next pass the class meets every offer, the queue every class. Both for who was told "not
 * now" and might be told otherwise. */
void class_look_again(struct core *c, struct class *k); /* NULL, and one without idle members, are fine */
void queue_look_again(struct core *c, struct queue *q);
void class_look_no_more(struct core *c, struct class *k);
/* Puts all jobs into their classes again: some now, the others in slices before anything is matched. Drafts
 * see it by `keyed`. */
void core_rekey(struct core *c);
bool core_rekey_slice(struct core *c); /* true: there are more */

/* agent.c */
struct core_agent *agent_get(struct core *c, struct str name); /* makes it */
struct core_agent *agent_find(const struct core *c, const char *name);
struct queue *queue_get(struct core *c, struct core_agent *a, struct str name);
void queue_attach(struct queue *q, struct job *j);
void queue_detach(struct queue *q, struct job *j);
void queue_accepted(struct queue *q, struct job *j); /* no-op when it was accepted before */
/* Writes what is free into its ad. What a queue takes ahead of its turn is no machine: never more than it
 * has. */
void queue_show_free(struct core *c, struct queue *q);
bool queue_allows_owner(const struct queue *q, const char *owner);
/* Denied as by owners_deny. */
struct str queue_denies_owner(const struct queue *q, const char *owner);
void agents_free(struct core *c);
struct core_agent **agents_sorted(struct core *c,
                                  size_t *ret_count); /* by name; the caller frees the array */

/* session.c: ends the leases whose time has come; milliseconds to the next end, INT64_MAX when there is none
 */
int64_t leases_end(struct core *c);
void lease_began(struct core *c, const struct job *j); /* an attempt is there that was not: its end counts */

/* why.c */
struct ad *queue_whole_ad(struct core *c,
                          const struct queue *q); /* as if it had nothing to do; the caller frees */
struct queue *walk_next(struct core_walk *w);     /* NULL at its end */
/* May a slice of a walk that began at eval.steps_all == began ask another queue? Half of UINT32_MAX queues
 * and more are all of them, in one go. */
bool walk_has_steps(const struct core *c, uint64_t began, unsigned queues);
/* core_why_some, of a request that need not be found. */
void why_some(struct core *c, struct core_walk *w, unsigned queues, const struct request *r, uint32_t member,
              core_why_fn *fn, void *arg);
bool queue_would_take(struct core *c, const struct ad *job,
                      const struct ad *place); /* both sides agree, and there is room */

/* joblog.c */
void joblog_push(struct joblog *log, struct joblog_entry e);              /* takes e.text */
void joblog_event(struct job *j, const struct event *e, struct queue *q); /* q may be NULL */
/* For members without a record: one entry for all of them. */
void joblog_event_of_all(struct request *r, const struct event *e, const struct set *members);
void joblog_deinit(struct joblog *log);

/* policy.c */
struct exit_decision {
        enum job_state next;
        int32_t code, subcode;
        char reason[256];
};
void policy_exit(struct core *c, struct request *r, struct job *j, const struct core_result *result,
                 struct exit_decision *ret);
bool policy_periodic_step(struct core *c, unsigned budget); /* true: more to do in this round */

/* tick.c: writes the rows of some members that ended without a record. True: there are more. */
bool history_file_slice(struct core *c, uint64_t budget);

/* history.c */
/* Files as a result's outputs are packed, as a list of ads. */
void history_print_files(struct buf *out, struct str packed);
void history_file(struct core *c, struct request *r, uint32_t member, enum job_state state, int64_t ended_ms,
                  const struct job *j, int32_t exit_code);
