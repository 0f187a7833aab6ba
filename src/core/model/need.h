/* need: what a job asks of a queue, and what the queue has left. For the files of core/ only.
 *
 * Cpus, memory in MiB, disk in KiB. What a queue has left may be less than nothing when its agent says that
 * it has less than it was given.
 */
#pragma once
#include "core/model/amounts.h"
#include "core/model/names.h"

/* What an agent says that it has, of a resource, or for a price: more is taken for this, so that sums of
 * what agents say do not pass the end. */
#define OFFERED_MAX (1ll << 50)

struct need {
        int64_t cpus, memory_mib, disk_kib;
        struct amounts more; /* only the first `count` of it are set */
};

/* What a job of this class needs at this place; `job` is the class's ad, or a member's own. */
void need_of(struct core *c, const struct job_class *k, const struct ad *job, const struct ad *place,
             struct need *ret);
bool need_same(const struct need *a, const struct need *b);
bool need_fits(struct core *c, const struct need *n, const struct queue *q);
/* So many of them fit at once; UINT64_MAX: it needs nothing. */
uint64_t need_count(struct core *c, const struct need *n, const struct queue *q);
/* One job's worth less in the queue; its ad says so. The index is not told: index_queue_changed, after the
 * last job of those that are taken together. */
void need_take(struct core *c, const struct need *n, struct queue *q);

/* What an attempt that the agent refuses was to take is there again. */
void need_return(struct core *c, const struct need *n, struct queue *q);

/* After an offer: countable resources are what its ad says, less what was taken and is not accepted. */
void need_read_resources(struct core *c, struct queue *q);
/* What the attempt of a job takes of countable resources is taken (1), or is the agent's to count (-1). */
void need_count_taken(struct queue *q, const struct job *j, int sign);
