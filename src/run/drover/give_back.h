/* give_back: gives back jobs that wait at the other server although no place there would take them.
 *
 * The other server's answer to "why does it wait?" has each place's verdict. If for the length of the lease
 * no place fits the job, also if it were empty, the job is removed there, as long as it is idle; when the
 * other server confirms this, the job's task ends, and the job can run elsewhere.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/format/json_read.h"

struct remote;
struct remote_request;
struct remote_task;

/* Returns whether the job waits for a place there, as far as is known; it may also have run there before. */
bool remote_waits(const struct remote_task *t);
/* Takes note of an answer to GET /v1/jobs/ID/why about a member of the request. now: boot clock. */
void remote_places_told(struct remote_request *r, const json_t *why, int64_t now);
/* Asks the other server to remove what has waited too long. */
void remote_give_back(struct remote *f, int64_t now);
/* Ends the task of a job that was removed there by this agent, without an order to do so. */
void remote_given_back(struct remote_task *t);
