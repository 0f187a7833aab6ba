/* choose: which offers a class can use, and which of them it uses first; and the same for offers and classes.
 * For the files of core/ only. */
#pragma once
#include "core/core.h"
#include "core/model/cost_class.h"
#include "core/model/names.h"

struct need;

/* Would this queue take a member of the class now? Then *ret_need is what the member takes. What only one
 * member can be asked about is not looked at (dispatch.c). */
bool choose_fits(struct core *c, struct job_class *k, struct queue *q, struct need *ret_need);

/* ---- of several places, for a class */
struct candidate {
        struct queue *queue;
        double rank; /* the job's own word on this place; higher is better */
        double cost; /* lower is better; the same for places of one cost class that hold the same
                      * (cost_class.h)
                      */
};
/* Does it matter to the class which of the places that it can use it gets? */
bool choose_class_prefers(struct core *c, const struct job_class *k);
/* What goes before what among places of one cost: less than any cost tells apart, for it is less than a
 * millisecond, or a byte. */
static inline double choose_order(unsigned search_order)
{
        return (double)search_order / (SEARCH_ORDER_NONE + 1);
}
/* What a place costs a member by the placement that is configured, and its search order; lower is better.
 * COST_NOWHERE (cost.h): the member is not given there. */
double choose_cost(struct core *c, const struct part *p, uint32_t member, const struct queue *q);
struct candidate choose_worth(struct core *c, struct job_class *k, struct queue *q); /* what it is worth */
int choose_better(const struct candidate *a, const struct candidate *b); /* <0: a is the better one */
void choose_sort(struct candidate *found, size_t count);                 /* best first */

/* ---- of several classes, for an offer */
struct liked {
        struct job_class *job_class;
        double rank;                    /* the queue's word on these jobs; higher is better */
        double wishes[CORE_WISHES_MAX]; /* how well each of its wishes is met; the same */
        size_t turn;                    /* of the order, which decides between equals */
};
bool choose_offer_prefers(const struct queue *q);
struct liked choose_liking(struct core *c, struct queue *q, struct job_class *k, size_t turn);
void choose_sort_liked(struct liked *found, size_t count); /* best first */
