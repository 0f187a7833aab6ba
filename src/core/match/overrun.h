/* overrun: bounds what users' expressions may cost in matching.
 *
 * An evaluation that runs into a limit of eval.h fails, and would fail again at the next look. The culprit is
 * therefore found once: jobs are held with the reason, and held jobs are not evaluated, also after a restart;
 * a queue is left out of matching for a minute. An expression that stays below the limits but takes long is
 * charged to the account of its jobs (account_evaluated): an account that has used up its share of a second
 * meets no more queues until it has paid that back, so that other accounts get their turn.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

#define OVERRUN_PAUSE_MS 60000 /* how long a queue is left out */
#define OVERRUN_ORDINARY 24u   /* a look with at most so many steps need not be reported to overrun_looked */

/* Must be called before evaluations for a class. False: its account has used up its share; the class is
 * looked at again in a second. */
bool overrun_may_look(struct core *c, struct job_class *k);
/* Must be called after them, with the values of core_steps and eval.overruns from before. Charges the
 * class's account, and notes whether the class or the queue q caused an overrun. */
void overrun_looked(struct core *c, struct job_class *k, struct queue *q, uint64_t steps, uint64_t overruns);
/* Charges the account alone, for evaluations whose failure is handled elsewhere. steps: core_steps from
 * before.
 */
void overrun_charge(struct core *c, struct job_class *k, uint64_t steps);

/* Called once per turn: holds the jobs that caused overruns, and wakes the classes that were kept back. */
void overrun_tick(struct core *c);
/* Appends which limit the last evaluation ran into, as a part of a sentence: "past the limit of 20000 steps".
 */
void overrun_say(const struct core *c, struct buf *out);
