/* suits: comparison of the ads of a job and a place, with the first clause that keeps them apart. */
#pragma once
#include "core/model/names.h"
#include "core/query.h"

struct ad *queue_whole_ad(struct core *c,
                          /* The queue's ad with all resources free; the caller frees. */
                          const struct queue *q);
/* Compares a job with a place, including room and start time. Returns CORE_FITS; or CORE_JOB_REFUSES or
 * CORE_QUEUE_REFUSES with the first clause that is not true, and its value, appended. */
enum core_verdict suits_now(struct core *c, const struct ad *job, const struct ad *place, struct buf *clause,
                            struct buf *value);
/* Returns whether suits_now finds that the job fits. */
bool queue_would_take(struct core *c, const struct ad *job, const struct ad *place);
/* Returns whether jobs of this kind belong in the queue at all: a queue for placement jobs (Runner is mover)
 * takes no programs, and explanations for programs leave it out. */
bool queue_is_place_for(struct core *c, const struct queue *q, const struct ad *job);
/* Returns whether the queue would take jobs of the class if it were idle. whole: queue_whole_ad of q. */
bool suits_class(struct core *c, const struct job_class *k, const struct queue *q, const struct ad *whole);
