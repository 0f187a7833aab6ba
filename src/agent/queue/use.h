/* use: what each queue has used today, for the limits of its pull policy (place/pull_policy.h).
 *
 * The sums outlive the agent: STATE/use has a line for each queue with the day, four sums and the queue's
 * name. The file is written now and then; a kill loses the use of some twenty seconds at most.
 */
#pragma once

struct agent;
/* Sets `use` of the open queues from the file; a queue that is not in it has used nothing. */
void queue_use_read(struct agent *a);
void queue_use_write(struct agent *a); /* writes the file if it has changed */
void queue_use_tick(
        struct agent *a); /* called every second: begins a new day, and writes the file when due */
void queue_use_close(struct agent *a);
