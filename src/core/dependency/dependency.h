/* dependency: jobs that wait for others start when these have ended as they should. For the files of core/.
 *
 * When a request with a graph (model/graph.h) is accepted, EVENT_WAITS says which members wait: they are
 * idle, and in no bucket. Events that end jobs are counted by the edges that these are parents of; between
 * turns dependency_settle emits EVENT_READY for members whose edges are all satisfied. Of members that can
 * never start as they were meant to, OnDependencyFailure says whether they are held (then EVENT_READY
 * follows, and a release lets them run all the same) or removed.
 *
 * Jobs that need not run, as other attempts of what has succeeded, are completed at once by EVENT_SKIPPED:
 * they count as successes. An exit code that ends the graph (AbortGraphOn) removes all its other jobs, and
 * those that only go along with others are ended with these.
 *
 * Counts are made anew after a restart, of the states of jobs, so what a crash has kept from being emitted is
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
/* Checks that the jobs which the draft's wait for are there, and are its owner's. 0; CORE_INVALID with err.
 */
int dependency_check(struct core *c, struct request *draft, struct err *err);
void dependency_begin(struct core *c, struct request *r);     /* it was just accepted */
void dependency_event(struct core *c, const struct event *e); /* one has been applied, live */
void dependency_settle(struct core *c);                       /* before matching */
void dependency_ready(struct core *c);                        /* replay is over */
/* Other requests' jobs wait for jobs of it: it may not be forgotten. */
bool dependency_keeps(struct core *c, const struct request *r);
/* NULL, or a sentence: a job runs before what it waits for, or waits for nothing. */
const char *dependency_invariant(struct core *c);
