/* index: finds the classes that a queue may run, and the parked offers that a class may use, without
 * examining all of them. For the files of core/ only.
 *
 * Classes with the same compulsory constraints share a *job signature*; queues that show the same attributes
 * to them share an *offer signature*. A job signature is compared with an offer signature once, and pairs
 * that do not match are never examined again. Within a job signature classes are in their order (order.h);
 * within an offer signature parked offers are sorted by free processors, the most first. Both are trees that
 * skip subtrees in which nothing fits.
 *
 * The index excludes only what Requirements certainly refuse: what it finds must still be evaluated
 * (choose.h). A clause of Requirements, of either side, can be indexed if it uses only its own ad and
 * attributes of the other side that are constant there and do not change with time or load: `TARGET.Arch ==
 * "X86_64"`, `TARGET.HasDocker`, `member("gpu", TARGET.Tags)`, in any form of the language. Such a clause is
 * evaluated once for a job signature and an offer signature. Names of attributes come from users and agents:
 * at most INDEX_NAMES_MAX are shown by each side, a source of new names gets no more than are still free for
 * others, and a name whose value keeps changing is no longer shown.
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

/* Parked queues of one offer signature and one cost class (cost_class.h): they show the same to a class and
 * have the same cost for it, except for the files that each holds. Bins are brought up to date only before
 * they are used. */
struct offer_bin {
        struct cost_class *cost_class; /* a reference */
        struct tree queues;            /* most free processors first */
};
struct index *index_new(void);
void index_free(struct index *x); /* all classes must be gone; NULL is fine */

void index_class_add(struct core *c, struct job_class *k); /* a new class, with its ad and need set */
void index_class_drop(struct core *c, struct job_class *k);
/* The class has gained its first or lost its last idle member, or its place in the order has changed. */
void index_class_changed(struct core *c, struct job_class *k);

void index_queue_shown(struct core *c, struct queue *q); /* its ad has changed */
/* Updates the index after the queue's free resources or its parking has changed. */
void index_queue_changed(struct core *c, struct queue *q);

/* Updates some classes and queues for names learned since. Returns true if there are more. */
bool index_slice(struct core *c, unsigned budget);

/* Iterates over the classes that a queue may run, in their order. Meanwhile matching may change the queue's
 * free resources and the classes already returned, but no other class. */
struct index_entry {
        struct heap_node node;
        struct job_signature *signature;
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

/* Iterates over the parked offers that a class may use, most free processors first, with the same rule for
 * changes. */
struct index_offer {
        struct heap_node node;
        struct offer_signature *signature;
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

void index_queue_moved(struct core *c, struct queue *q); /* its cost class has changed */
void offer_bins_settle(struct core *c); /* brings all bins up to date; called before they are used */
/* Calls fn for each bin that may have an offer for the class, in no order. */
void offer_bins_each(const struct job_class *k, void (*fn)(void *arg, struct offer_bin *b), void *arg);
/* Returns the first offer of a bin, or the first behind `after`, that has room for the class; NULL: none. */
struct queue *offer_bin_next(struct offer_bin *b, const struct job_class *k, const struct queue *after);
/* Returns the most free processors of one of its offers; no bin is empty. */
int64_t offer_bin_cpus(const struct offer_bin *b);

/* Returns whether the index allows these two to match, for tests. */
bool index_meets(const struct job_class *k, const struct queue *q);
struct index_counts {
        size_t job_signatures, offer_signatures, job_names, queue_names;
};
void index_counts(const struct core *c, struct index_counts *ret);
