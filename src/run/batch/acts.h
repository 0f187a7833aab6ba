/* acts: what the system is told to do with tasks: end, stop, continue, hold, release, nudge. */
#pragma once
#include "run/batch/batch.h"

struct acts;
struct batch;
struct submission;
struct task;

struct acts *batch_acts_new(void);
void batch_acts_free(struct acts *acts);
bool batch_acts_ask_soon(const struct batch *b); /* something waits for an answer that names it */
bool batch_has(const struct batch *b, enum batch_verb verb);
/* The number of the whole submission is known: its tasks are in, and what waited for that is told. */
void batch_native_known(struct batch *b, struct submission *s, struct str native);
/* The system shall be told so. A number may be another job's since the last answer that named it, for a
 * system that has lost its memory gives its numbers again: so the verb waits for the next answer that names
 * it, which is asked for soon. A nudge harms nobody, and goes with the next batch_acts_run. */
void batch_act(struct batch *b, struct task *t, enum batch_verb verb);
/* The same by the last answer, for one that is forgotten or that nothing will be asked about any more. */
void batch_act_unasked(struct batch *b, struct task *t, enum batch_verb verb);
void batch_acts_named(struct batch *b); /* an answer was read: what waits goes out for those that it named */
void batch_acts_run(struct batch *b);
void batch_acts_again(struct batch *b);                    /* what was not heard: the system answers */
void batch_act_now(struct batch *b, enum batch_verb verb); /* all of the verb that are ours, and waits */
