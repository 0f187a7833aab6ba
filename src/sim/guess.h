/* guess: errors of the core's expected starts and ends, beside those of simple predictors.
 *
 * The core is asked about a job once, at the end of the turn in which the job was submitted. The simple
 * predictors are: for the wait, the mean of the last ten waits at the queue where the job ran in the end; for
 * the run, the time that its user asked for, and the mean of the same user's last two jobs; for the end, wait
 * and requested time together. The bounds that the core gives are measured by how often they held. A job that
 * ran longer than its user asked for, until the batch system of its log ended it, counts as ended at its
 * limit, where Drover would end it.
 */
#pragma once
#include "core/core.h"
#include "sim/measure.h"
#include "sim/site.h"

struct sim_guesses;
struct sim_guesses *sim_guesses_new(const struct sim_workload *w, const struct sim_site *site);
void sim_guesses_free(struct sim_guesses *g); /* NULL is fine */
/* Asks the core about job `job`, at the end of the turn in which it was submitted. */
void sim_guess(struct sim_guesses *g, uint32_t job, struct core *c, uint64_t request, uint32_t member);
/* Records that the job started at a queue of this cluster. */
void sim_guess_started(struct sim_guesses *g, uint32_t job, uint32_t cluster, const struct sim_times *t);
void sim_guess_ended(struct sim_guesses *g, uint32_t job, int64_t run_ms);
/* Computes the medians of the errors, over jobs for which the core gave a time. */
void sim_guesses_measure(const struct sim_guesses *g, const struct sim_times *times,
                         struct sim_guess_errors *ret);
