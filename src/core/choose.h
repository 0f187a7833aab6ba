/* choose: which offers a class can use, and which of them it uses first. For the files of core/ only. */
#pragma once
#include "core/need.h"

struct candidate {
        struct queue *queue;
        double rank; /* the job's own word on this place; higher is better */
        double cost; /* lower is better; in whole seconds, so that what is about the same counts as that */
};

/* Would this queue take a member of the class now? Then *ret_need is what the member takes. What only one
 * member can be asked about is not looked at (give.c). */
bool choose_fits(struct core *c, const struct class *k, const struct queue *q, struct need *ret_need);

/* What this place is worth to this class. */
struct candidate choose_worth(struct core *c, const struct class *k, struct queue *q);

/* Of `count` offers, those that the class can use, best first, into `found`, which has room for all. Returns
 * how many. */
size_t choose_offers(struct core *c, const struct class *k, struct queue *const *offers, size_t count,
                     struct candidate *found);
