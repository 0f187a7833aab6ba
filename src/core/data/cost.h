/* cost: what it would take to have a job's result from a place.
 *
 * The terms are times and are kept apart, so that they can be shown; their sum is what places are compared
 * by. Bytes count, not the number of files: 10 GB that must come over a thin link outweigh a thousand small
 * files that are there. Links, speed and price are those of the place's cost class, the mean of places that
 * are about the same. A link that nobody has measured is taken to be COST_BYTES_PER_S and COST_LATENCY_US; a
 * run time that nobody knows is the same everywhere.
 */
#pragma once
#include "core/model/names.h"
#include "core/query.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COST_BYTES_PER_S 12500000u /* 100 Mbit/s */
#define COST_LATENCY_US  50000u

struct input;
/* `member` may be MEMBER_ANY: by what is the same for all. wait_ms is that at the
 * place's batch system, as it says (QueueWait). */
void cost_of(struct core *c, const struct part *p, uint32_t member, const struct queue *q,
             struct core_cost *ret);
/* Do all stores answer its agent that the member (or MEMBER_ANY) must read or write? What it holds need not
 * be read. */
bool cost_reaches(struct core *c, const struct part *p, uint32_t member, const struct queue *q);
/* The store that does not; FILE_STORE_NONE: all do. */
size_t cost_store_down(struct core *c, const struct part *p, uint32_t member, const struct queue *q);
/* How long the transfers take that a member (or MEMBER_ANY) would begin there: of files that neither are
 * there nor come. */
int64_t cost_begins_ms(struct core *c, const struct part *p, uint32_t member, const struct queue *q);
/* Until the place has room: at least so long; meanwhile its links become free. */
void cost_wait(struct core_cost *cost, int64_t wait_ms);
/* What must come, or be made, before it can run. */
static inline int64_t cost_input_ms(const struct core_cost *cost)
{
        return cost->link_ms + cost->fetch_ms + cost->image_ms + cost->environment_ms;
}
/* As it will be when what is on its way now has long come. */
void cost_later(struct core_cost *cost);
/* How long a job holds its processors. */
static inline int64_t cost_held_ms(const struct core_cost *cost)
{
        return cost->total_ms - cost->wait_ms - cost->price_ms;
}

/* Files that must come, by store: what they cost is the same at all places of a cost class (cost_class.h). */
#define COST_STORES_MAX 16u
struct cost_load {
        struct cost_store {
                uint8_t store;
                double files, bytes;
                double inflight_files, inflight_bytes; /* of these, what comes already: whole files */
        } stores[COST_STORES_MAX];
        unsigned count;
};
/* `share` of the file, of its latency too: 1 for all of it; less: it comes already, and is part of what loads
 * the links. */
void cost_load_add(struct cost_load *l, const struct input *f, double share);
/* total_ms of a member of the part at a place of this cost class to which all of the load must come. */
int64_t cost_of_load_ms(struct core *c, const struct part *p, const struct cost_load *l,
                        const struct cost_class *x);

/* Do the stores that the class's job needs which goes first answer there? */
bool cost_reaches_first(struct core *c, const struct job_class *k, const struct queue *q);
