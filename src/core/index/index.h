/* index: which classes a queue may run, and which parked offers a class may use, without looking at all of
 * them. For the files of core/ only.
 *
 * Classes with the same compulsory constraints share a *job signature*, queues that show the same to them
 * share an *offer signature*. A job signature meets an offer signature once: whoever does not suit is never
 * looked at again. Within a job signature classes stand in their order (order.h), within an offer signature
 * parked offers by what they have free, the most first; both are trees that leave out parts in which nothing
 * fits.
 *
 * The index only excludes what Requirements surely refuse: whoever is found must still be asked (choose.h).
 * What can be indexed is a clause of Requirements, of either side, that looks at nothing but its own ad and
 * attributes of the other side that are constant there and do not move with time or load: `TARGET.Arch ==
 * "X86_64"`, `TARGET.HasDocker`, `member("gpu", TARGET.Tags)`, in any form that the language has. Such a
 * clause is evaluated once for a job signature and an offer signature. Names come from users and agents: at
 * most INDEX_NAMES_MAX are shown by each side, of which whoever brings new ones gets no more than are still
 * free for others, and one that turns out to change all the time is shown no longer.
 */
#pragma once
#include "base/heap.h"
#include "base/tree.h"
#include "classad/symbols.h"
#include "core/model/names.h"

struct index;
struct job_signature;
struct offer_signature;

#define INDEX_NAMES_MAX 64u

/* Parked queues of one offer signature with one cost class (cost_class.h): what they show to a class is the
 * same, and what they cost it, but for the files that each of them holds. Bins are kept up when somebody is
 * about to look at them. */
struct offer_bin {
        struct cost_class *cost_class; /* a reference */
        struct tree queues;            /* those with most room first */
};
struct index *index_new(void);
void index_free(struct index *x); /* after all classes are gone; NULL is fine */

void index_class_add(struct core *c, struct job_class *k); /* new, with its ad and what it needs */
void index_class_drop(struct core *c, struct job_class *k);
/* It has idle members now, or its place in the order has changed, or neither any more. */
void index_class_changed(struct core *c, struct job_class *k);

void index_queue_shown(struct core *c, struct queue *q);   /* its ad is another */
void index_queue_changed(struct core *c, struct queue *q); /* what it has free, or whether it is parked */

/* Takes up names that were learnt since, for some classes and queues. True: there are more. */
bool index_slice(struct core *c, unsigned budget);

/* The classes that a queue may run, in their order. What is given meanwhile may change what the queue has
 * free, and the classes that were told, but no other. */
struct index_entry {
        struct heap_node node;
        struct job_signature *group;
        const struct tree *tree;
        struct job_class *next;
};
struct index_classes {
        struct core *core;
        const struct queue *queue;
        struct index_entry *entries;
        struct heap heap;
        bool ask_owner;
};
void index_classes_begin(struct index_classes *w, struct core *c, const struct queue *q);
struct job_class *index_classes_next(struct index_classes *w); /* NULL: no more */
void index_classes_end(struct index_classes *w);

/* The parked offers that a class may use, those with most free processors first. The same about changes. */
struct index_offer {
        struct heap_node node;
        struct offer_signature *kind;
        struct queue *next;
};
struct index_offers {
        const struct job_class *job_class;
        struct index_offer *entries;
        struct heap heap;
};
void index_offers_begin(struct index_offers *w, const struct job_class *k);
struct queue *index_offers_next(struct index_offers *w);
void index_offers_end(struct index_offers *w);

/* ---- bins */

void index_queue_moved(struct core *c, struct queue *q); /* it has another cost class */
void offer_bins_settle(struct core *c); /* before looking at bins: all are as they should be */
/* Calls fn for each bin that may have an offer for the class, in no order. */
void offer_bins_each(const struct job_class *k, void (*fn)(void *arg, struct offer_bin *b), void *arg);
/* The first offer of a bin, or the first behind `after`, that has room for the class; NULL: there is none. */
struct queue *offer_bin_next(struct offer_bin *b, const struct job_class *k, const struct queue *after);
int64_t offer_bin_cpus(
        const struct offer_bin *b); /* the most that one of its offers has free; none is empty */

/* For tests: could these two meet, by what the index knows? */
bool index_meets(const struct job_class *k, const struct queue *q);
struct index_counts {
        size_t groups, kinds, job_names, queue_names;
};
void index_counts(const struct core *c, struct index_counts *ret);
