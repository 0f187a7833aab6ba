/* inflight_transfers: files being fetched by agents for jobs that were given to them, and their load on the
 * links; for the files of core/ only.
 *
 * A job that joins a transfer in progress waits only for its rest, and adds no transfer. Without this
 * record, jobs with the same file that are matched at one time would be spread over all free agents, and
 * each agent would fetch the file. The record is an estimate and not an event: if an agent fails to fetch a
 * file, that is noticed when its attempts end. Jobs matched before a restart are not counted.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

#define INFLIGHT_PART 0.5 /* fraction of a transfer in progress that is assumed to be left */

/* The job's attempt at its queue begins, or ends (call it while the job still has its queue). */
void inflight_begin(struct core *c, const struct job *j);
void inflight_end(struct core *c, const struct job *j);
/* The agent has reported that it holds the file. */
void inflight_arrived(struct core *c, struct core_agent *a, uint64_t file);

/* Forgets the agent's transfers; called before stores are renumbered. */
void inflight_forget(struct core *c, struct core_agent *a);

bool inflight_to(const struct core_agent *a, uint64_t file);
void inflight_deinit(struct core *c);
bool inflight_ok(const struct core *c); /* for core_check */
