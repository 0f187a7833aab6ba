/* queues: opens and closes the configured queues and their runners. */
#pragma once
#include "agent/model/queue.h"

/* Opens all queues. `observer` is called with the backend as its arg. Returns 0, or -errno with err. */
int queues_open(struct agent *a, const struct run_observer *observer, struct err *err);
void queues_stop(struct agent *a);  /* closes the runners */
void queues_close(struct agent *a); /* frees them; no attempt may be left */
/* Returns the queue that the journal names, a retired one if it is no longer configured. NULL with err: its
 * jobs are in a batch system that only the removed settings name. */
struct queue *queue_of_journal(struct agent *a, const char *name, const char *runner, struct err *err);
