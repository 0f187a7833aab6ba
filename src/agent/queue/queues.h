/* queues: opening the queues that the configuration names, and their runners. */
#pragma once
#include "agent/model/queue.h"

/* `observer` is called with the backend. 0 or -errno with err. */
int queues_open(struct agent *a, const struct run_observer *observer, struct err *err);
void queues_stop(struct agent *a);  /* closes the runners */
void queues_close(struct agent *a); /* frees, when no attempt is left */
/* The queue that the journal names: if it is not in the configuration any more, a retired one. NULL with err:
 * its jobs are in a batch system which only its settings name. */
struct queue *queue_of_journal(struct agent *a, const char *name, const char *runner, struct err *err);
