/* overrun: users' expressions that take too long in matching.
 *
 * One evaluation of a pair of ads that runs into a limit of eval.h is an error, and would be one again at the
 * next look. So whose expression it was is found out, once: jobs are held, with the reason, and a held job is
 * asked nothing, after a restart neither. A queue is asked for nothing for a minute. An expression that stays
 * below the limits but takes long is charged to the account of its jobs: one that has taken its part of a
 * second meets no more queues in that second, so that the others' jobs have their turn.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

#define OVERRUN_PAUSE_MS 60000 /* of a queue */
#define OVERRUN_ORDINARY 24u   /* steps of a look that nobody has to hear of, when no limit was reached */

/* Call it before evaluations for a class. False: its account has taken its part of this second; the class is
 * looked at again in the next one. */
bool overrun_may_look(struct core *c, struct job_class *k);
/* Call it after them, with what eval.steps_all and eval.overruns were before; q: the queue that was asked.
 * Notes whose fault an overrun was. */
void overrun_looked(struct core *c, struct job_class *k, struct queue *q, uint64_t steps, uint64_t overruns);

/* From time to time: holds the jobs that were noted, and wakes the classes that were kept back. */
void overrun_tick(struct core *c);
/* Which limit the last evaluation ran into, as a part of a sentence: "past the limit of 20000 steps". */
void overrun_say(const struct core *c, struct buf *out);
