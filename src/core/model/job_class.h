/* job_class: a class, which is the jobs that are alike in everything that matters for matching, and its
 * buckets, each the idle members of one request in that class with one priority. classes/ creates and changes
 * both.
 */
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
        struct heap_node node; /* in the heap of its class while it has idle members */
        struct request *request;
        struct job_class *job_class;
        int64_t priority;
        double points; /* points for its priority and age, see order.h */
        struct set idle;
        struct set *members; /* NULL: all members of the request */
        uint32_t part;
        uint32_t eta_pass;  /* eta.c: estimated start and interval of its idle members */
        uint32_t eta_known; /* of how many of them, from the first on */
        float eta_step_ms, eta_run_ms;
        int64_t eta_start_ms;
};

/* A position in the order of classes, see order.h. */
struct order_mark {
        const struct account *account; /* NULL: the mark is empty */
        double own, points;            /* own: the part of the standing beside fair share and waiting */
        uint64_t request;
        int64_t priority;
        uint32_t due_s;
        uint32_t part;
};

struct job_class {
        struct str key;                    /* that of classes.by_key */
        struct job_template *job_template; /* parent of the class's ad */
        struct ad *ad;
        struct heap buckets; /* those with idle members, ordered by precedence */
        uint32_t kib;        /* size of its ad and key, which counts in "queued_kib/OWNER" */
        uint64_t idle;       /* idle members; the class is ready while there are any */
        unsigned users;      /* buckets that refer to the class */
        uint64_t met_at;  /* pending_match.offers_new at the last search among all offers; 0: search again */
        size_t dirty_at;  /* 1-based index in pending_match.dirty, classes that are to be compared with every
                             offer; 0: not listed */
        bool passed_over; /* some members wait for a better place, so the others have not been compared with
                             every offer */
        struct index_class index;
        bool has_rank;
        bool fixed; /* cpus, memory_mib, disk_kib and `more` are literals */
        struct amounts more;
        int64_t cpus, memory_mib, disk_kib, lease_ms;
        char *owner;
        struct account *account;
        struct job_class *account_next, *account_prev; /* list of the account's classes with idle members */
        struct reservation *reserved;                  /* NULL: none */
        int64_t given_ms;        /* time at which the class was last given a place, or became ready */
        int64_t given_before_ms; /* given_ms before its last change */
        uint64_t reserve_round;  /* reservation round in which a place was last sought for the class */
        const struct qos *qos;   /* NULL: none */
        double credential;       /* points of its owner and account */
        double standing;         /* see order.h */
        double own;              /* its part beside fair share and waiting */
        struct draws *draws;     /* units of limits that each member draws; NULL: none */
        bool draws_vary;         /* draws depend on the place: `draws` does not have them */
        bool draws_bad;          /* the job's attribute is no valid list of limits */
        struct limit *user;      /* limit on the owner's attempts */
        uint64_t broke_at; /* bank_generation() + 1 as of which the account could not pay; 0: it could */
        struct limit_waiter waits;    /* position in the line of a limit whose units are used up */
        uint64_t stores, stores_into; /* stores that each member draws a unit of, see inputs_store_draws */
        unsigned into, written;       /* see inputs_store_draws */
        uint16_t claim_store;         /* store in which each member claims space (data/space.h) */
        uint32_t claim_units;         /* 0: none */
        bool places;                  /* members are placement jobs, whose number per owner is limited */
        uint64_t labels; /* labels of its data: only agents cleared for all of them get its jobs */
        /* Start time and end of the window for it (deferral.h); 0: any time. */
        int64_t not_before_ms, missed_ms;
        bool asleep; /* the start time has not come yet */
        bool leaks;  /* outputs would go to a store that may not have them: no place gets the
                        jobs */
        /* Queue at which an expression of the class took too long, so its jobs will be held; NULL: none. */
        const struct queue *overrun;
        struct buf overrun_why;
        bool kept_back; /* skipped until its account may evaluate expressions again (overrun.h) */
        struct job_class *apart_next, *apart_prev; /* in classes.apart */
        int64_t gang_due_ms; /* no search for places for its gangs before this time; 0: none pending */
};

/* All classes. */
/* The class of a template's jobs, found before: making the key of a class takes longer than all else that a
 * request of one job takes. */
struct class_known {
        const struct job_template *job_template; /* compared only */
        struct job_class *job_class;             /* NULL: the slot is free */
        uint64_t keyed;
};
#define CLASSES_KNOWN_BITS 6

struct classes {
        struct map *by_key;
        struct class_known known[1 << CLASSES_KNOWN_BITS]; /* by a hash of the template's address */
        struct buf key; /* key of the last search; kept, because allocating long keys anew fragments memory */
        struct job_class *apart; /* classes whose members are placed apart: gangs and meta jobs */
        /* Next request to be put into classes again, followed by those behind it in the list; NULL: none. */
        struct request *rekey_next;
        struct split *rekeying; /* split in progress, of the request before rekey_next; NULL: none */
        uint64_t keyed;         /* number of rekeyings begun; results of an earlier one are stale */
        symbol *significant;    /* job attributes that expressions of agents refer to */
        size_t significant_count, significant_cap;
        uint64_t lost_last;      /* core_lost: jobs of requests up to this may be running unknown to the
                                    server */
        int64_t lost_until_ms;   /* steady clock: end of that time; 0: no such jobs */
        size_t deferred;         /* classes with a start time */
        size_t reserving;        /* classes whose jobs run in an advance reservation */
        bool leaks;              /* policy_hold_leaks is to be called at the next tick */
        uint64_t buckets_filled; /* number of times that a bucket without idle members got some */
};

/* Returns the slot for a template. */
static inline struct class_known *classes_known_at(struct classes *all, const struct job_template *t)
{
        return &all->known[((uintptr_t)t * 0x9e3779b97f4a7c15u) >> (64 - CLASSES_KNOWN_BITS)];
}

/* Returns the first bucket of a class that has idle members. */
static inline struct bucket *job_class_first_bucket(const struct job_class *k)
{
        return container_of(heap_first(&k->buckets), struct bucket, node);
}
