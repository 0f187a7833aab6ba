/* cost: the estimated time until a job's result is available, for a job run at a given place.
 *
 * The terms are times, kept apart so that they can be shown; places are compared by their sum. Bytes count,
 * not the number of files: 10 GB over a slow link outweigh a thousand small files that are present. Links,
 * speed and wait are means of the place's cost class (cost_class.h); the price is the place's own, and in
 * cost_of_load_ms the mean. A link without measurements is taken to have COST_BYTES_PER_S and
 * COST_LATENCY_US; an unknown run time is taken to be the same everywhere.
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
/* Computes the cost of a member at q. `member` may be MEMBER_ANY: only the inputs common to all members
 * count. wait_ms is the wait at the place's batch system, as its ad reports it (QueueWait). */
void cost_of(struct core *c, const struct part *p, uint32_t member, const struct queue *q,
             struct core_cost *ret);
/* Returns whether q's agent reaches all stores that the member (or MEMBER_ANY) must read or write. Files
 * that the agent holds need not be read. */
bool cost_reaches(struct core *c, const struct part *p, uint32_t member, const struct queue *q);
/* Returns the first such store that the agent cannot reach; FILE_STORE_NONE: it reaches all. */
size_t cost_store_down(struct core *c, const struct part *p, uint32_t member, const struct queue *q);
/* Returns the time of the transfers that a member (or MEMBER_ANY) would start there, in milliseconds: of
 * files that are neither held nor already being fetched. */
int64_t cost_new_transfers_ms(struct core *c, const struct part *p, uint32_t member, const struct queue *q);
/* Sets the wait until the place has room to at least wait_ms; the load on its links decreases meanwhile. */
void cost_wait(struct core_cost *cost, int64_t wait_ms);
/* Returns the time to fetch or make all inputs. */
static inline int64_t cost_input_ms(const struct core_cost *cost)
{
        return cost->link_ms + cost->fetch_ms + cost->image_ms + cost->environment_ms;
}
/* Replaces the run time, and with it the price, of a job of the part at q. */
void cost_set_run(const struct part *p, const struct queue *q, int64_t run_ms, struct core_cost *cost);
/* Removes the load of current transfers from the cost, for a job that starts much later. */
void cost_without_traffic(struct core_cost *cost);
/* Returns how long the job holds its processors. */
static inline int64_t cost_held_ms(const struct core_cost *cost)
{
        return cost->total_ms - cost->wait_ms - cost->price_ms;
}

/* Files to be fetched, by store. Their cost is the same at all places of a cost class (cost_class.h). */
#define COST_STORES_MAX 16u
struct cost_load {
        struct cost_store {
                uint8_t store;
                double files, bytes;
                /* Part of these that is being fetched already, as whole files. */
                double inflight_files, inflight_bytes;
        } stores[COST_STORES_MAX];
        unsigned count;
};
/* Adds `share` of the file and of its latency: 1 for the whole file; less for a file that is being fetched
 * already and is part of the links' load. */
void cost_load_add(struct cost_load *l, const struct input *f, double share);
/* Sets *ret to a member's files (or those of MEMBER_ANY), all to be fetched. */
void cost_load_of(struct core *c, const struct part *p, uint32_t member, struct cost_load *ret);
/* Returns total_ms of a member of the part at a place of this cost class that must fetch the whole load. */
int64_t cost_of_load_ms(struct core *c, const struct part *p, const struct cost_load *l,
                        const struct cost_class *x);
/* Returns how long the load would take to such a place if there were no other transfers. */
int64_t cost_load_fetch_ms(const struct cost_load *l, const struct cost_class *x);
/* The same for an agent's own links, also those of one that is away; NULL: links that nobody has measured. */
int64_t cost_load_fetch_by_ms(const struct cost_load *l, const struct core_agent *a);

/* Returns whether q's agent reaches the stores that the class's first job needs. */
bool cost_reaches_first(struct core *c, const struct job_class *k, const struct queue *q);
