/* expressions: users' expressions, evaluated by the server on threads that serve others, too.
 *
 * Each evaluation ends after CORE_EVAL_STEPS_MAX steps, or 50 ms of the thread's processor time: a machine
 * that has much else to do makes nobody's expression an error. A constraint of a call is evaluated over many
 * jobs: it has so many steps for each of them, and a sum for all.
 */
#pragma once
#include "classad/eval.h"

struct core;

/* Prepares an evaluator, as eval_init does, under these limits; random() is as if the seed were 0. */
void expressions_eval_init(struct eval *ev, int64_t now_s);
uint64_t expressions_clock_ns(void); /* the clock of these limits, for the core's own evaluations */

#define CONSTRAINT_STEPS_MAX     2000000u /* for all jobs of a call, and beside that */
#define CONSTRAINT_STEPS_PER_JOB 100u     /* for each job that was looked at */
#define CONSTRAINT_NAMES_MAX     10000u   /* attribute names that it may bring along */

struct constraint {
        struct expr *expr; /* NULL: there is none */
        struct eval eval;
        struct symbols_use *names; /* the caller's, forgotten at the end of the slice */
        uint64_t steps, jobs;      /* so far, in all slices of the call */
        uint64_t request, kind;    /* of the last job of a kind (core_job_kind); request 0: none */
        enum { KIND_SEEN, KIND_DIFFERS, KIND_FAILS, KIND_HOLDS } found; /* for all jobs of it */
        char *error; /* NULL, or the limit that it ran into: a sentence; owned */
};

/* Begins a slice of a call; an empty text is no constraint. `x` is zeroed before the first, and keeps its
 * sums from slice to slice. Ads that it is asked about are of the same symbols. 0; a classad_error with err.
 */
int constraint_begin(struct constraint *x, struct symbols *symbols, struct str text, struct err *err);
void constraint_end(struct constraint *x); /* of the slice; fine when it has not begun */
void constraint_deinit(struct constraint *x);
/* Whether the constraint holds for this job; without a constraint it does. When a limit is reached the answer
 * is no, x->error is set, and no more jobs shall be asked about. */
bool constraint_holds(struct constraint *x, const struct ad *ad, uint64_t request, uint32_t member);
/* The same for a job of the core. Jobs of one kind are looked at once, where the constraint depends on
 * nothing in which they differ. *ret_ad: the job's ad, the caller's, if it was made; else NULL. */
bool constraint_holds_job(struct constraint *x, struct core *core, uint64_t request, uint32_t member,
                          struct ad **ret_ad);
