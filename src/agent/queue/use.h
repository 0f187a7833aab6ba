/* use: what each queue has used today, for the limits of its pull policy (place/pull_policy.h).
 *
 * It outlives the agent: STATE/use has, for each queue, a line of the day, four sums and the queue's name. It
 * is written now and then; what a kill loses of it is what was used since, some twenty seconds at most.
 */
#pragma once

struct agent;
/* Fills `use` of the queues that are open; those that the file does not name have used nothing. */
void queue_use_read(struct agent *a);
void queue_use_write(struct agent *a); /* if it has changed */
void queue_use_tick(struct agent *a);  /* every second: a new day begins, and it is written when it is time */
void queue_use_close(struct agent *a);
