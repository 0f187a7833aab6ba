/* containment: which parts of containment are put around a queue's jobs, and what its ad says of them.
 * The parts themselves are in shepherd/containment.h, what the file says of them is read by
 * config_containment. */
#pragma once
#include "agent/config/config.h"

struct agent;
struct queue;

/* Attributes of the queue's ad: `Containment = {"hide", "filter"}; `, without those that the machine lacks.
 */
void queue_containment_attributes(const struct queue *q, struct buf *out);
/* The shepherd has told what the machine has: says in the log what is missing. `no_view`: an errno. */
void queue_containment_told(struct agent *a, unsigned parts, int no_view);
