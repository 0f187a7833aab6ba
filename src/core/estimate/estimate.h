/* estimate: predicts run times and output sizes of jobs from those that have ended; for core/ only.
 *
 * The prediction is the median of the last few runs of similar jobs, at the closest known level of
 * similarity: the same owner, program, arguments (likeness.h), size of inputs, processors and time asked
 * for; the same without size and processors; the same program; the same owner. All are times at a place of
 * ordinary speed: a place that is significantly slower or faster than others for the same program gets a
 * factor of its own. The errors of predictions are learned for each level (spread.h), and give the bounds
 * that are shown and the prediction for a job that has run for a while.
 *
 * After a restart the estimates are learned again from the events that are replayed.
 *
 * Estimates from which nothing was learned are freed with the last part that uses them, since a user may make
 * up any number of programs, in dry runs too; and each owner has a number of estimates.
 */
#pragma once
#include "core/estimate/spread.h"
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ESTIMATE_LAST 5u

struct estimate { /* runs of similar jobs */
        uint32_t count;
        float last_ms[ESTIMATE_LAST]; /* the newest at (count - 1) % ESTIMATE_LAST */
        double run_ms;                /* the median of these */
        double mean_ms, bytes_out;    /* moving averages */
        struct estimate *above;       /* the next lower level of similarity; NULL: this is an owner's */
        uint32_t users;               /* parts of requests, and estimates whose `above` this is */
        uint32_t below;               /* of an owner's: all estimates of that owner */
        char *key;                    /* its key in `programs`; NULL: everybody's */
        size_t key_n;
};

/* Sources of a prediction, the best first. */
enum estimate_source {
        ESTIMATE_SAME,      /* jobs alike in everything */
        ESTIMATE_ARGUMENTS, /* jobs with the same arguments and time asked for */
        ESTIMATE_SAID,      /* the author's ExpectedRunTime */
        ESTIMATE_PROGRAM,
        ESTIMATE_OWNER,
        ESTIMATE_ALLOWED, /* the allowed run time */
        ESTIMATE_EVERYBODY,
        ESTIMATE_SOURCES
};
/* For each source: predictions from one run, from two to four, from more. */
#define ESTIMATE_SPREADS (ESTIMATE_SOURCES * 3u)

struct estimates {
        struct map
                *programs; /* programs and owners: those that a part uses, or that some job has ended for */
        struct estimate everybody;
        struct spread spreads[ESTIMATE_SPREADS];
        /* Weighted counts of recent ends: all, within the median, within most_ms. */
        double ended, by_half, by_most;
};

/* Half of the jobs with the same prediction run up to half_ms, nine in ten up to most_ms, according to past
 * errors. */
struct estimate_bounds {
        int64_t half_ms, most_ms;
};

/* Attaches the estimates for the part's members, in place of those that it has. */
void estimate_attach(struct core *c, const struct request *r, struct part *p);
void estimate_detach(struct core *c, struct part *p); /* when the part is freed */
/* The job's attempt has started: the current prediction is recorded, and compared when the attempt ends. */
void estimate_started(struct core *c, struct job *j);
/* Learns from a job that has run to its end. Returns true if the slowness of its queue, and so its cost
 * class, may have changed. */
bool estimate_learn(struct core *c, const struct job *j, int64_t run_ms, uint64_t bytes_out);
/* Returns the predicted run time of a member at q (NULL: at a place of ordinary speed), from the first known
 * source of enum estimate_source, never more than the allowed time. *ret_known: the source is better than
 * everybody's median. */
int64_t estimate_run_ms(struct core *c, const struct part *p, const struct queue *q, bool *ret_known);
/* Estimates the run time as estimate_run_ms does, at a place that takes `slowness` times as long. */
int64_t estimate_run_at_ms(struct core *c, const struct part *p, double slowness, bool *ret_known);
/* Returns whether there is no basis for a prediction: no job of anybody has run to its end yet, and the part
 * gives no time. */
bool estimate_is_blind(struct core *c, const struct part *p);
/* Returns whether the prediction is worth showing: jobs of its program with similar arguments have run to
 * their end, or its author gave a time. */
bool estimate_is_close(const struct part *p);
/* Returns the run time for forecasts that are shown, at a place that takes `slowness` times as long: the
 * prediction if it is close, else the allowed time. *ret_known (NULL is fine): false if there is neither;
 * then it is the time of other programs. */
int64_t estimate_shown_ms(struct core *c, const struct part *p, double slowness, bool *ret_known);
/* Computes the bounds of the whole run of a member at q that has run for ran_ms (0: not started). They are
 * worth showing only if estimate_is_close; without a close prediction the allowed time counts. */
void estimate_bounds(struct core *c, const struct part *p, const struct queue *q, int64_t ran_ms,
                     struct estimate_bounds *ret);
double estimate_slowness(const struct queue *q); /* slowness of the place; 1 for NULL */
uint64_t estimate_bytes_out(const struct part *p);
/* Returns the remaining time of an attempt that has run for ran_ms: up to the predicted time; after that,
 * until half of the similar jobs that reached its age have ended. */
int64_t estimate_left_ms(struct core *c, const struct part *p, const struct queue *q, int64_t ran_ms);
/* Computes when the job's attempt will end, as Unix milliseconds: half_ms and most_ms are times. */
void estimate_ends(struct core *c, const struct job *j, struct estimate_bounds *ret);
/* Returns the attempt's end by its remaining time, for plans, from a cache at most a minute old, and younger
 * than a fiftieth of the attempt's age. */
int64_t estimate_end_ms(struct core *c, struct job *j);
/* Returns the attempt's end for a forecast: as estimate_end_ms, unless the prediction is not close: then by
 * the allowed time; 0: not known. With `guess`, 0 only if estimate_is_blind. */
int64_t estimate_forecast_end_ms(struct core *c, struct job *j, bool guess);
struct unpack;
/* learned.h: packs the estimates with the most runs; unpacking keeps, for each, the one with more runs. */
void estimates_pack(struct core *c, struct buf *out);
void estimates_unpack(struct core *c, struct unpack *in);
void estimates_init(struct core *c);
void estimates_deinit(struct core *c);
