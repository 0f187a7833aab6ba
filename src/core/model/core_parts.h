/* core_parts: the core itself, as its parts see it. */
#pragma once
#include "classad/eval.h"
#include "core/model/agent.h"
#include "core/model/attributes.h"
#include "core/model/listeners.h"
#include "core/model/request.h"

struct core_draft;
struct eta;
struct eta_play;
struct forgotten;
struct index;
struct shares;
struct sites;
struct split;

struct core {
        uint32_t magic;
        struct core_config config;
        struct core_world world;
        struct symbols *symbols;
        struct attributes attr;
        struct eval eval;
        struct core_listeners listeners;
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

        struct sites *sites;
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
        struct estimate *everybody;
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
        uint64_t late_steps;        /* taken by part_expand: what it does counts like steps of evaluations */
        struct buf class_key;       /* kept: long ones that come and go would leave holes in the memory */
        struct request *submitting; /* a draft, while it is accepted: spares loading the record */
        bool replaying;
};
#define CORE_MAGIC 0x44726f76u

/* Steps that the core has taken, ever. */
static inline uint64_t core_steps(const struct core *c)
{
        return c->eval.steps_all + c->late_steps;
}
