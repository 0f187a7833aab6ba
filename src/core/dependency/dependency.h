/* dependency: starts jobs that depend on others once these have ended as required. For the files of core/.
 *
 * When a request with a graph (model/graph.h) is accepted, EVENT_WAITS names the waiting members: they are
 * idle, and in no bucket. Events that end jobs satisfy the edges of which these are parents; between turns
 * dependency_settle emits EVENT_READY for members whose edges are all satisfied. OnDependencyFailure decides
 * whether members whose condition can never be met are held (then EVENT_READY follows, and a release lets
 * them run) or removed.
 *
 * Jobs that need not run, as alternatives to a job that has succeeded, are completed at once by
 * EVENT_SKIPPED and count as successes. An exit code that ends the graph (AbortGraphOn) removes all its
 * other jobs, and jobs that only accompany others end with them.
 *
 * The counts are derived from the states of jobs after a restart, so an event that a crash prevented is
 * emitted then. A request that others wait for is not forgotten.
 */
#pragma once
#include "base/err.h"
#include "base/set.h"
#include "core/model/names.h"

struct event;
struct request;
struct submission;

void dependency_init(struct core *c);
void dependency_deinit(struct core *c);
/* Checks that the jobs that the draft depends on exist and belong to its owner. Returns 0, or CORE_INVALID
 * with err. */
int dependency_check(struct core *c, struct request *draft, struct err *err);
void dependency_begin(struct core *c, struct request *r);     /* called once it is accepted */
void dependency_event(struct core *c, const struct event *e); /* called after a live event was applied */
void dependency_settle(struct core *c);                       /* called before matching */
void dependency_ready(struct core *c);                        /* called when replay is over */
/* Returns whether jobs of other requests wait for jobs of r, which then may not be forgotten. */
bool dependency_keeps(struct core *c, const struct request *r);
/* Returns NULL, or a sentence: a job runs before its dependencies, or waits without one. */
const char *dependency_invariant(struct core *c);
