/* signature: job signatures and offer signatures as the index keeps them; for the files of core/index only.
 */
#pragma once
#include "base/map.h"
#include "core/index/side.h"
#include "core/model/index_node.h"

/* Either of a job signature and an offer signature. Each has a list of those of the other sort that it meets;
 * one that is gone is taken out of such a list when somebody comes across it, and its struct lives until
 * then. */
struct index_signature {
        struct index_side side;
        struct index_signature **meets;
        size_t meet_count, meet_cap, meet_clean; /* meet_clean: count after it was last cleaned */
        size_t users;                            /* classes or queues; 0: gone */
        size_t held;                             /* lists that it stands in */
        size_t at;                               /* 1-based place in the list of all */
};
struct index_owner {
        char *name;
        struct tree classes;
};
struct job_signature {
        struct index_signature signature;
        struct tree classes; /* those with idle members */
        struct map *owners;  /* of them, by owner */
};
struct offer_signature {
        struct index_signature signature;
        struct tree queues;      /* parked */
        struct offer_bin **bins; /* the same queues by cost class; none is empty */
        size_t bin_count, bin_cap;
};

struct index_signatures {
        struct map *by_text;
        struct index_signature **all;
        size_t count, cap;
        struct index_names names; /* that they show */
};
struct index {
        struct index_signatures groups, kinds;
        struct job_class **classes;
        struct queue **queues;
        size_t class_count, class_cap, queue_count, queue_cap;
        size_t class_slice, queue_slice; /* so many of the lists know all names; SIZE_MAX: all do */
        struct queue **stale;            /* whose spot is to be looked at */
        size_t stale_count, stale_cap;
        uint64_t serial;
};

static inline struct job_signature *job_signature_of(struct index_signature *p)
{
        return container_of(p, struct job_signature, signature);
}
static inline struct offer_signature *offer_signature_of(struct index_signature *p)
{
        return container_of(p, struct offer_signature, signature);
}
/* offer_bin.c */
void offer_bin_later(struct index *x, struct queue *q); /* its spot is to be looked at */
void offer_bin_leave(struct queue *q);                  /* at once, for its offer signature may go */
void offer_signature_empty(struct offer_signature *k);  /* of its bins, whatever they hold */

struct room index_queue_room(const struct queue *q);
bool room_within(const struct room *need, const struct room *has);
/* The n-th party that p meets, or NULL; those that are gone are taken out. */
struct index_signature *index_meet(struct index_signature *p, size_t n);
