/* suits: do the ads of a job and of a place agree, and what stands against it? */
#pragma once
#include "core/model/names.h"
#include "core/query.h"

struct ad *queue_whole_ad(struct core *c,
                          const struct queue *q); /* as if it had nothing to do; the caller frees */
/* Does this pair of ads agree, and is there room? CORE_FITS; CORE_JOB_REFUSES or CORE_QUEUE_REFUSES, and
 * clause and value say what stands against it. */
enum core_verdict suits_now(struct core *c, const struct ad *job, const struct ad *place, struct buf *clause,
                            struct buf *value);
bool queue_would_take(struct core *c, const struct ad *job,
                      const struct ad *place); /* both sides agree, and there is room */
/* Is the queue a place for such a job at all? One for placement jobs only (its Runner is mover) is none for
 * programs, and is left out of what is told about them. */
bool queue_is_place_for(struct core *c, const struct queue *q, const struct ad *job);
/* Would the queue take jobs of the class if it had nothing to do? `whole`: queue_whole_ad. */
bool suits_class(struct core *c, const struct job_class *k, const struct queue *q, const struct ad *whole);
