/* containment: which parts of containment a queue's jobs get, and their names in its ad.
 * shepherd/containment.h implements the parts, config_containment reads the file. */
#pragma once
#include "agent/config/config.h"

struct agent;
struct queue;

/* Appends an attribute of the queue's ad, `Containment = {"hide", "filter"}; `, without parts that the
 * machine lacks. */
void queue_containment_attributes(const struct queue *q, struct buf *out);
/* Called when the shepherd has reported the available parts: logs the missing ones. no_view: errno of the
 * failed mount view; 0: none. */
void queue_containment_told(struct agent *a, unsigned parts, int no_view);
