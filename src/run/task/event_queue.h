/* event_queue: what a runner has to tell, until the next turn of the loop.
 *
 * A runner's verbs never call the observer: events are queued in order, with copies of their texts, and told
 * together in the loop's next turn. Consecutive events of tasks go in one call. One thread, the loop's.
 */
#pragma once
#include "run/runner.h"

struct event_queue;
/* Both are borrowed; `arg` goes to each call of the observer. */
struct event_queue *event_queue_new(struct loop *l, const struct run_observer *observer, void *arg);
void event_queue_free(struct event_queue *q); /* what was not told is dropped; NULL is fine */
/* Tells what is queued, now. The observer may close the runner, and so free the queue. */
void event_queue_tell(struct event_queue *q);

/* Each is the call of struct run_observer of that name; texts are copied. */
void event_queue_task(struct event_queue *q, const struct run_event *e);
void event_queue_signal_waits(struct event_queue *q, struct run_id id);
void event_queue_checkpointed(struct event_queue *q, struct run_id id, const char *files);
void event_queue_quoted(struct event_queue *q, const struct run_quote *quote);
void event_queue_ready(struct event_queue *q, uint32_t containment, int hide_error);
void event_queue_unreachable(struct event_queue *q, const char *why);
void event_queue_silent(struct event_queue *q, const char *why);
