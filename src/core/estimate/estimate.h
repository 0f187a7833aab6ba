/* estimate: how long jobs run and how much they write, learned from those that have ended; for core/ only.
 *
 * What is expected of a job is the median of the last few runs of jobs like it, from the closest likeness
 * that is known: the same owner, program, arguments (likeness.h), size of inputs, processors and time asked
 * for; the same without size and processors; the same program; the same owner. All in the time of a place of
 * ordinary speed: a place that turns out slower or faster than others for the same program, by more than
 * luck, gets a factor of its own. How far expectations of each likeness are off is learned as well
 * (spread.h), and gives the bounds that are shown, and what is expected of a job that has run for a while.
 *
 * After a restart it is learned again from the events that are replayed.
 */
#pragma once
#include "core/estimate/spread.h"
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

#define ESTIMATE_LAST 5u

struct estimate { /* of jobs that are alike */
        uint32_t count;
        float last_ms[ESTIMATE_LAST]; /* the newest at (count - 1) % ESTIMATE_LAST */
        double run_ms;                /* the median of these */
        double mean_ms, bytes_out;    /* means, newer ones weighing more */
        struct estimate *above;       /* of jobs that are less alike; NULL: of an owner's */
};

/* The source of an expectation, the best first. */
enum estimate_source {
        ESTIMATE_SAME,      /* jobs like it in everything */
        ESTIMATE_ARGUMENTS, /* of the same arguments and time asked for */
        ESTIMATE_SAID,      /* its author's word */
        ESTIMATE_PROGRAM,
        ESTIMATE_OWNER,
        ESTIMATE_ALLOWED, /* the time that it is allowed */
        ESTIMATE_EVERYBODY,
        ESTIMATE_SOURCES
};
#define ESTIMATE_SPREADS (ESTIMATE_SOURCES * 3u) /* of each source: of one run, of two to four, of more */

struct estimates {
        struct map *programs; /* and owners; NULL: none yet */
        struct estimate everybody;
        struct spread spreads[ESTIMATE_SPREADS];
        double ended, by_half, by_most; /* the last few hundred expectations; those that held, see bounds */
};

/* Half of the jobs that are expected to take as long as this one run up to half_ms, nine in ten up to
 * most_ms, as far as those of the past tell. */
struct estimate_bounds {
        int64_t half_ms, most_ms;
};

/* Finds the estimates of jobs like the part's members. Called once when it is loaded. */
void estimate_attach(struct core *c, const struct request *r, struct part *p);
/* The attempt of the job has been started: what is expected of it now is compared when it ends. */
void estimate_started(struct core *c, struct job *j);
/* The job has run to its end. True: it says something of the pace of its queue, and so of its cost class. */
bool estimate_learn(struct core *c, const struct job *j, int64_t run_ms, uint64_t bytes_out);
/* Of a member at q (NULL: at a place of ordinary speed): by the first of estimate_source that is known
 * (ExpectedRunTime is its author's word), never more than it is allowed. *ret_known: not just everybody's
 * median. */
int64_t estimate_run_ms(struct core *c, const struct part *p, const struct queue *q, bool *ret_known);
/* The same at a place where it takes so many times as long as at one of ordinary speed. */
int64_t estimate_run_at_ms(struct core *c, const struct part *p, double slowness, bool *ret_known);
/* Nothing is known that an expectation could be made of: nobody's job has run to its end here yet, and of
 * these no time was said. */
bool estimate_is_blind(struct core *c, const struct part *p);
/* What is known is worth telling to people: jobs of its program with arguments like its own have run to their
 * end here, or its author said a time. */
bool estimate_is_close(const struct part *p);
/* Of a member at q that has run for so long (0: not yet): of the whole run. */
void estimate_bounds(struct core *c, const struct part *p, const struct queue *q, int64_t ran_ms,
                     struct estimate_bounds *ret);
double estimate_slowness(const struct queue *q); /* of the place; 1 for NULL */
uint64_t estimate_bytes_out(const struct part *p);
/* What is left of an attempt that has run for so long: what is missing to the expected time, and when that is
 * over, until half of those like it that came to its age have ended. */
int64_t estimate_left_ms(struct core *c, const struct part *p, const struct queue *q, int64_t ran_ms);
/* When the attempt that it has will be over, Unix milliseconds: half_ms and most_ms as times. */
void estimate_ends(struct core *c, const struct job *j, struct estimate_bounds *ret);
/* The same by what is left, for plans; a minute old at most, and less than its age by fifty. */
int64_t estimate_end_ms(struct core *c, struct job *j);
struct unpack;
/* learned.h: those that most runs were counted of; and of these what knows of more runs than what is there.
 */
void estimates_pack(struct core *c, struct buf *out);
void estimates_unpack(struct core *c, struct unpack *in);
void estimates_init(struct core *c);
void estimates_deinit(struct core *c);
