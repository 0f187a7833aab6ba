/* signature: job signatures and offer signatures as the index keeps them; for the files of core/index only.
 */
#pragma once
#include "base/map.h"
#include "core/index/side.h"
#include "core/model/index_node.h"

/* Common part of a job signature and an offer signature. Each lists the signatures of the other sort that it
 * matches. A signature without users is removed from such a list when it is found there, and is freed after
 * the last removal. */
struct index_signature {
        struct index_side side;
        struct index_signature **meets;
        size_t meet_count, meet_cap, meet_clean; /* meet_clean: count after the last cleaning */
        size_t users;                            /* number of classes or queues; 0: unused */
        size_t held;                             /* number of lists that contain it */
        size_t at;                               /* 1-based place in `all` */
};
struct index_owner {
        char *name;
        struct tree classes;
};
struct job_signature {
        struct index_signature signature;
        struct tree classes; /* classes with idle members */
        struct map *owners;  /* the same classes by owner */
};
struct offer_signature {
        struct index_signature signature;
        struct tree queues;      /* parked queues */
        struct offer_bin **bins; /* parked queues by cost class; no bin is empty */
        size_t bin_count, bin_cap;
};

struct index_signatures {
        struct map *by_text;
        struct index_signature **all;
        size_t count, cap;
        struct index_names names; /* names that they show */
};
struct index {
        struct index_signatures job_signatures, offer_signatures;
        struct job_class **classes;
        struct queue **queues;
        size_t class_count, class_cap, queue_count, queue_cap;
        size_t class_slice, queue_slice; /* number of classes or queues that are up to date with all names;
                                            SIZE_MAX: all */
        struct queue **stale;            /* queues whose bin must be determined */
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
void offer_bin_later(struct index *x, struct queue *q); /* marks the queue's bin as out of date */
void offer_bin_leave(struct queue *q); /* leaves its bin at once, since its offer signature may be freed */
void offer_signature_empty(struct offer_signature *k); /* frees all its bins */

struct room index_queue_room(const struct queue *q);
bool room_within(const struct room *need, const struct room *has);
/* Returns the n-th signature that p matches, or NULL; unused ones are removed from the list. */
struct index_signature *index_meet(struct index_signature *p, size_t n);
