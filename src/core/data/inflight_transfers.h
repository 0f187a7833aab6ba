/* inflight_transfers: files on their way to an agent, because jobs that read them were given to it, and so
 * what loads the links that they come over; for the files of core/ only.
 *
 * A file that comes is not there yet, but a job that joins the transfer waits for the rest of it only, and
 * moves nothing. Without this, jobs with the same file that are given at one time are spread over as many
 * agents as are free, and each fetches it. Nothing of it is an event, and it is a guess: an agent that fails
 * to fetch is found out when its attempts end. Jobs given before a restart are not counted.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

#define INFLIGHT_PART 0.5 /* of a file's transfer: what is taken to be left of it */

/* The job was given to its queue; its attempt ends (call it while it still has the queue). */
void inflight_begin(struct core *c, const struct job *j);
void inflight_end(struct core *c, const struct job *j);
/* The agent says that it holds the file now. */
void inflight_arrived(struct core *c, struct core_agent *a, uint64_t file);

/* Stores are about to get other numbers: nothing comes to the agent any more, as far as is known. */
void inflight_forget(struct core *c, struct core_agent *a);

bool inflight_counts(const struct core *c); /* what comes is counted, since it decides who gets what */
bool inflight_to(const struct core_agent *a, uint64_t file);
void inflight_deinit(struct core *c);
bool inflight_ok(const struct core *c); /* for core_check */
