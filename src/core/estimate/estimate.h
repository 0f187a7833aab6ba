/* estimate: how long jobs run and how much they write, learned from those that have ended; for core/ only.
 *
 * Kept for each program of each owner, and for each owner, in the time of a place of ordinary speed: a place
 * that turns out slower or faster than others for the same program, by more than luck, gets a factor of its
 * own. After a restart it is learned again from the events that are replayed.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct estimate { /* of a program of an owner, or of an owner */
        uint32_t count;
        double run_ms, last_ms; /* the mean, newer ones weighing more; the last one */
        double bytes_out;
        struct estimate *owner; /* of a program: its owner's */
};

struct estimates {
        struct map *programs; /* and owners; NULL: none yet */
        struct estimate everybody;
};

/* What the part's members are: its program's and its owner's estimates. Called once when it is loaded. */
void estimate_attach(struct core *c, const struct request *r, struct part *p);
/* A member has run to its end at q. True: it says something of the pace of q, and so of its cost class. */
bool estimate_learn(struct core *c, const struct part *p, struct queue *q, int64_t run_ms,
                    uint64_t bytes_out);
/* Of a member at q (NULL: at a place of ordinary speed). The program's own runs, else its author's word
 * (ExpectedRunTime, in seconds), else the owner's last two, else the time it is allowed, else everybody's
 * mean; never more than it is allowed. *ret_known: not just everybody's mean. */
int64_t estimate_run_ms(struct core *c, const struct part *p, const struct queue *q, bool *ret_known);
/* The same at a place where it takes so many times as long as at one of ordinary speed. */
int64_t estimate_run_at_ms(struct core *c, const struct part *p, double slowness, bool *ret_known);
/* Nothing is known that an expectation could be made of: nobody's job has run to its end here yet, and of
 * these no time was said. */
bool estimate_is_blind(struct core *c, const struct part *p);
double estimate_slowness(const struct queue *q); /* of the place; 1 for NULL */
uint64_t estimate_bytes_out(const struct part *p);
/* What is left of an attempt that has run for so long. One that has outlived its estimate is expected to run
 * for a quarter of its age more. */
int64_t estimate_left_ms(struct core *c, const struct part *p, const struct queue *q, int64_t ran_ms);
/* When the attempt that it has will be over, Unix milliseconds. */
int64_t estimate_end_ms(struct core *c, const struct job *j);
struct unpack;
/* learned.h: those that most runs were counted of; and of these what knows of more runs than what is there.
 */
void estimates_pack(struct core *c, struct buf *out);
void estimates_unpack(struct core *c, struct unpack *in);
void estimates_init(struct core *c);
void estimates_deinit(struct core *c);
