/* event_queue: events of a runner, kept until the loop's next turn.
 *
 * A runner's calls never call the observer: events are queued in order, with copies of their texts, and
 * delivered together in the loop's next turn. Consecutive task events go in one call. All calls are made on
 * the loop's thread.
 */
#pragma once
#include "run/runner.h"

struct event_queue;
/* `l` and `observer` are borrowed; `arg` goes to each call of the observer. */
struct event_queue *event_queue_new(struct loop *l, const struct run_observer *observer, void *arg);
void event_queue_free(struct event_queue *q); /* drops events that were not delivered; NULL is fine */
/* Delivers the queued events now. The observer may close the runner, and so free the queue. */
void event_queue_tell(struct event_queue *q);

/* Queue the event of struct run_observer of the same name; texts are copied. */
void event_queue_task(struct event_queue *q, const struct run_event *e);
void event_queue_signal_waits(struct event_queue *q, struct run_id id);
void event_queue_checkpointed(struct event_queue *q, struct run_id id, const char *files);
void event_queue_quoted(struct event_queue *q, const struct run_quote *quote);
void event_queue_ready(struct event_queue *q, uint32_t containment, int hide_error);
void event_queue_unreachable(struct event_queue *q, const char *why);
void event_queue_silent(struct event_queue *q, const char *why);
