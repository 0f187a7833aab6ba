/* guess: how far the core's expected starts and ends were off, beside what people go by without them.
 *
 * A job is asked about once, at the end of the turn in which it was submitted. What it is compared with: for
 * the wait, the mean of the last ten waits at the queue where it ran in the end; for the run, the time that
 * its user asked for; for the end, both together.
 */
#pragma once
#include "core/core.h"
#include "sim/measure.h"
#include "sim/site.h"

struct sim_guesses;
struct sim_guesses *sim_guesses_new(const struct sim_workload *w, const struct sim_site *site);
void sim_guesses_free(struct sim_guesses *g); /* NULL is fine */
/* Job `job` was submitted, and the turn is over. */
void sim_guess(struct sim_guesses *g, uint32_t job, struct core *c, uint64_t request, uint32_t member);
/* It started at a queue of this cluster. */
void sim_guess_started(struct sim_guesses *g, uint32_t job, uint32_t cluster, const struct sim_times *t);
/* Medians of the differences, over jobs whose user asked for a time and of which the core knew one. */
void sim_guesses_measure(const struct sim_guesses *g, const struct sim_times *times,
                         struct sim_guess_errors *ret);
