/* choose: which offers a class can use and which of them it prefers, and which classes an offer prefers. For
 * the files of core/ only. */
#pragma once
#include "core/core.h"
#include "core/model/cost_class.h"
#include "core/model/names.h"

struct need;

/* Returns whether the queue can take a member of the class now, and sets *ret_need to what the member would
 * take. Clauses that differ between members of a class are left to dispatch_wanted. */
bool choose_fits(struct core *c, struct job_class *k, struct queue *q, struct need *ret_need);

/* ---- of several places, for a class */
struct candidate {
        struct queue *queue;
        double rank; /* value of the job's Rank for this place; higher is better */
        double cost; /* lower is better; equal for places of one cost class that hold the same files
                      * (cost_class.h)
                      */
};
/* Returns whether the class prefers some of the places that it can use to others. */
bool choose_class_prefers(struct core *c, const struct job_class *k);
/* The search order as a fraction below 1. Added to a cost in milliseconds or bytes it decides between places
 * of equal cost only. */
static inline double choose_order(unsigned search_order)
{
        return (double)search_order / (SEARCH_ORDER_NONE + 1);
}
/* Returns the cost of a place for a member under its placement policy (policy.h); lower is better.
 * COST_NOWHERE (cost.h): the member must not be dispatched there. */
double choose_cost(struct core *c, const struct part *p, uint32_t member, const struct queue *q);
/* Returns the same for a member of the class, whose account is charged for the work. */
double choose_class_cost(struct core *c, struct job_class *k, const struct part *p, uint32_t member,
                         const struct queue *q);
/* Evaluates the class's Rank and cost for this place. */
struct candidate choose_worth(struct core *c, struct job_class *k, struct queue *q);
int choose_better(const struct candidate *a, const struct candidate *b); /* <0: a is the better one */
void choose_sort(struct candidate *found, size_t count);                 /* best first */

/* ---- of several classes, for an offer */
struct liked {
        struct job_class *job_class;
        double rank;                    /* value of the queue's Rank for these jobs; higher is better */
        double wishes[CORE_WISHES_MAX]; /* how well each wish of the queue is met; higher is better */
        size_t turn;                    /* place in the order of classes, which decides between equals */
};
bool choose_offer_prefers(const struct queue *q);
struct liked choose_liking(struct core *c, struct queue *q, struct job_class *k, size_t turn);
void choose_sort_liked(struct liked *found, size_t count); /* best first */
