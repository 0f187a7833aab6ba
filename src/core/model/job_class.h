/* job_class: jobs that are alike in all that matters for matching, and buckets, the idle members of one
 * request that are in one class with one priority. They are made and changed by classes/. */
#pragma once
#include "base/buf.h"
#include "base/heap.h"
#include "base/set.h"
#include "classad/symbols.h"
#include "core/accounts/limit.h"
#include "core/model/amounts.h"
#include "core/model/index_node.h"
#include "core/model/names.h"

struct account;
struct qos;
struct reservation;
struct split;
struct job_template;

struct bucket {
        struct heap_node node; /* in its class while it has idle members */
        struct request *request;
        struct job_class *job_class;
        int64_t priority;
        double points; /* for it and for its age, see order.h */
        struct set idle;
        struct set *members; /* NULL: all of the request */
        uint32_t part;
        uint32_t eta_pass; /* eta.c: when its idle members will start, the first one and those behind it */
        float eta_step_ms, eta_run_ms;
        int64_t eta_start_ms;
};

/* Where a class with idle members stands in the order, or stood; see order.h. */
struct order_mark {
        const struct account *account; /* NULL: no class stood there */
        double own, points;            /* of its standing, what is not its account's */
        uint64_t request;
        int64_t priority;
        uint32_t due_s;
        uint32_t part;
};

struct job_class {
        char *key;
        struct job_template *job_template; /* its ad's parent */
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
        struct job_class *account_next, *account_prev; /* of it, while this one has idle members */
        struct reservation *reserved;                  /* NULL: none */
        int64_t given_ms;                              /* when it was last given something, or became ready */
        int64_t given_before_ms;                       /* the time before that */
        uint64_t reserve_round;                        /* in which a place to keep was looked for last */
        const struct qos *qos;                         /* NULL: none */
        double standing;                               /* see order.h */
        struct draws *draws;                           /* units of limits that each member draws */
        bool draws_vary;                               /* they depend on the place: not in `draws` */
        bool draws_bad;                                /* they are no list of limits */
        struct limit *user;                            /* the owner's attempts */
        uint64_t broke_at;            /* bank_generation() + 1 when its account could not pay; 0: it could */
        struct limit_waiter waits;    /* for a unit of a limit */
        uint64_t stores, stores_into; /* of inputs_store_draws: each member draws a unit of each */
        unsigned into, written;       /* likewise */
        bool places;     /* its members are placement jobs, which their owner may have so many of */
        uint64_t labels; /* of its data: only agents that are cleared for all of them get its jobs */
        int64_t not_before_ms, missed_ms; /* 0: it starts when there is a place (deferral.h) */
        bool asleep;                      /* its time has not come yet */
        bool leaks; /* its outputs would go to where they may not: nobody gets its jobs */
        const struct queue
                *overrun; /* its expressions took too long there: its jobs will be held; NULL: no */
        struct buf overrun_why;
        bool kept_back;                          /* until its account may look at queues again (overrun.h) */
        struct job_class *gang_next, *gang_prev; /* of those whose members come in sets */
        int64_t gang_due_ms;                     /* its sets are not looked for places before; 0: now */
};

/* All of them. */
struct classes {
        struct map *by_key;
        struct buf key; /* the last one looked for; kept: long ones that come and go would leave holes in the
                           memory */
        struct job_class *gangs; /* those whose members come in sets */
        struct request
                *rekey_next;    /* that is to be put into classes again, and those behind it; NULL: none */
        struct split *rekeying; /* of the one before it, which is under way; NULL: none is */
        uint64_t keyed;         /* how often it was begun: what was keyed before is stale */
        symbol *significant;    /* job attributes that agents' expressions look at */
        size_t significant_count, significant_cap;
        uint64_t lost_last;      /* core_lost: jobs of requests up to this one may run unknown */
        int64_t lost_until_ms;   /* steady clock, until then; 0: none do */
        size_t deferred;         /* classes that start at a time */
        bool leaks;              /* policy_hold_leaks has something to look at */
        uint64_t buckets_filled; /* those that had no idle members and got some, ever */
};

static inline struct bucket *job_class_first_bucket(
        const struct job_class *k) /* of one that has idle members */
{
        return container_of(heap_first(&k->buckets), struct bucket, node);
}
