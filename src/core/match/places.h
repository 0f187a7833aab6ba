/* places: the parked offer that a job should go to, without looking at all of them; for the files of core/
 * only.
 *
 * It is the one of least cost (choose_cost) of all that the class can use, to the second; of equal ones that
 * with most free processors. What is looked at are agents that hold some of the job's files, and of the
 * others the first of each bin (index.h), for these cost the same within a bin.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct candidate;

struct places {
        struct core *core;
        struct job_class *job_class;
        uint64_t choice;
        bool down; /* some place was left out since a store does not answer there */
};
/* A walk: places that were told are not told again, and may have changed when the next one is asked for. */
void places_begin(struct places *w, struct core *c, struct job_class *k);
/* The best for the class's job that goes first now. NULL: there is no more, or the class has no job left. */
struct queue *places_next(struct places *w);

/* It may be told again. */
void places_again(struct queue *q);

/* Offers whose agents hold files of their own of the class's members, those that cost least first. At most
 * `max`; returns how many. */
size_t places_local(struct core *c, struct job_class *k, struct candidate *ret, size_t max);
