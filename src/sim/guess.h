/* guess: how far the core's expected starts and ends were off, beside what people go by without them.
 *
 * The run is compared with the mean of the same user's last two jobs as well, and the bounds that were told
 * with how often they held. A job is asked about once, at the end of the turn in which it was submitted. What
 * it is compared with: for the wait, the mean of the last ten waits at the queue where it ran in the end; for
 * the run, the time that its user asked for; for the end, both together.
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
void sim_guess_ended(struct sim_guesses *g, uint32_t job, int64_t run_ms);
/* Medians of the differences, over jobs of which the core knew a time. */
void sim_guesses_measure(const struct sim_guesses *g, const struct sim_times *times,
                         struct sim_guess_errors *ret);
