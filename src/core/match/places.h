/* places: finds the parked offer that a job should go to without looking at all of them. For the files of
 * core/ only.
 *
 * The result is the offer of least cost (choose_cost, to some milliseconds) among all that the class can use;
 * of equal ones the one with most free processors. Only agents that hold some of the job's files are compared
 * one by one; the other offers cost the same within a bin (index.h), so the first of each bin stands for all
 * of it.
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
        bool down; /* a place was left out because a store that the job needs does not answer there */
};
/* Begins a walk. The walk returns each place once; places may change between two calls. */
void places_begin(struct places *w, struct core *c, struct job_class *k);
/* Returns the best place for the class's first job. NULL: there is none left, or the class has no idle job.
 */
struct queue *places_next(struct places *w);

/* Lets the current walk return this place once more. */
void places_again(struct queue *q);

/* Finds offers whose agents hold files that single members of the class read, least cost first. Writes at
 * most `max` of them and returns their number. */
size_t places_local(struct core *c, struct job_class *k, struct candidate *ret, size_t max);
