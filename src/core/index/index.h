/* index: which classes a queue may run, and which parked offers a class may use, without looking at all of
 * them. For the files of core/ only.
 *
 * Classes with the same compulsory constraints are one *group*, queues that show the same to them are one
 * *kind*. A group meets a kind once: whoever does not suit is never looked at again. Within a group classes
 * stand in their order (order.h), within a kind parked offers by what they have free, the most first; both
 * are trees that leave out parts in which nothing fits.
 *
 * The index only excludes what Requirements surely refuse: whoever is found must still be asked (choose.h).
 * What can be indexed is a clause of Requirements, of either side, that looks at nothing but its own ad and
 * attributes of the other side that are constant there and do not move with time or load: `TARGET.Arch ==
 * "X86_64"`, `TARGET.HasDocker`, `member("gpu", TARGET.Tags)`, in any form that the language has. Such a
 * clause is evaluated once for a group and a kind. Names come from users and agents: at most INDEX_NAMES_MAX
 * are shown by each side, of which whoever brings new ones gets no more than are still free for others, and
 * one that turns out to change all the time is shown no longer.
 */
#pragma once
#include "base/heap.h"
#include "base/tree.h"
#include "classad/symbols.h"

struct core;
struct class;
struct profile;
struct queue;
struct index;
struct index_group;
struct index_kind;

#define INDEX_NAMES_MAX 64u

/* Parked queues of one kind with one profile (profile.h): what they show to a class is the same, and what
 * they cost it, but for the files that each of them holds. Bays are kept up when somebody is about to look at
 * them. */
struct index_bay {
        struct profile *profile; /* a reference */
        struct tree queues;      /* those with most room first */
};
struct index *index_new(void);
void index_free(struct index *x); /* after all classes are gone; NULL is fine */

void index_class_add(struct core *c, struct class *k); /* new, with its ad and what it needs */
void index_class_drop(struct core *c, struct class *k);
/* It has idle members now, or its place in the order has changed, or neither any more. */
void index_class_changed(struct core *c, struct class *k);

void index_queue_shown(struct core *c, struct queue *q);   /* its ad is another */
void index_queue_changed(struct core *c, struct queue *q); /* what it has free, or whether it is parked */

/* Takes up names that were learnt since, for some classes and queues. True: there are more. */
bool index_slice(struct core *c, unsigned budget);

/* The classes that a queue may run, in their order. What is given meanwhile may change what the queue has
 * free, and the classes that were told, but no other. */
struct index_entry {
        struct heap_node node;
        struct index_group *group;
        const struct tree *tree;
        struct class *next;
};
struct index_classes {
        struct core *core;
        const struct queue *queue;
        struct index_entry *entries;
        struct heap heap;
        bool ask_owner;
};
void index_classes_begin(struct index_classes *w, struct core *c, const struct queue *q);
struct class *index_classes_next(struct index_classes *w); /* NULL: no more */
void index_classes_end(struct index_classes *w);

/* The parked offers that a class may use, those with most free processors first. The same about changes. */
struct index_offer {
        struct heap_node node;
        struct index_kind *kind;
        struct queue *next;
};
struct index_offers {
        const struct class *class;
        struct index_offer *entries;
        struct heap heap;
};
void index_offers_begin(struct index_offers *w, const struct class *k);
struct queue *index_offers_next(struct index_offers *w);
void index_offers_end(struct index_offers *w);

/* ---- bays */

void index_queue_moved(struct core *c, struct queue *q); /* it has another profile */
void index_bays_settle(struct core *c); /* before looking at bays: all are as they should be */
/* Calls fn for each bay that may have an offer for the class, in no order. */
void index_bays_each(const struct class *k, void (*fn)(void *arg, struct index_bay *b), void *arg);
/* The first offer of a bay, or the first behind `after`, that has room for the class; NULL: there is none. */
struct queue *index_bay_next(struct index_bay *b, const struct class *k, const struct queue *after);
int64_t index_bay_cpus(
        const struct index_bay *b); /* the most that one of its offers has free; none is empty */

/* For tests: could these two meet, by what the index knows? */
bool index_meets(const struct class *k, const struct queue *q);
struct index_counts {
        size_t groups, kinds, job_names, queue_names;
};
void index_counts(const struct core *c, struct index_counts *ret);
