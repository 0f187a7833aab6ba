/* expressions: evaluates users' expressions on the server's shared threads, within limits.
 *
 * Each evaluation ends after CORE_EVAL_STEPS_MAX steps, or 50 ms of the thread's processor time; processor
 * time is used so that a loaded machine does not turn an expression into an error. A constraint of a call
 * is evaluated over many jobs: it has a limit for each job, and one for the sum. */
#pragma once
#include "classad/eval.h"
#include "core/query.h"

/* Prepares an evaluator, as eval_init does, with these limits. random() gives the values of seed 0. */
void expressions_eval_init(struct eval *ev, int64_t now_s);
uint64_t expressions_clock_ns(void); /* the clock of these limits, for evaluations by the core */

/* Evaluation of values of an ad that are shown, kept or passed on, most of which are literals: all from
 * expressions_read_init or expressions_read_next on may take EXPRESSIONS_READ_STEPS together. What comes
 * after is an error. */
#define EXPRESSIONS_READ_STEPS 200u
void expressions_read_init(struct eval *ev, int64_t now_s);
void expressions_read_next(struct eval *ev); /* the values of another ad follow */

#define CONSTRAINT_STEPS_MAX     2000000u /* for all jobs of a call; the next one is added for each job */
#define CONSTRAINT_STEPS_PER_JOB 100u     /* for each job that was evaluated */
#define CONSTRAINT_NAMES_MAX     10000u   /* new attribute names that a constraint may introduce */

struct constraint {
        struct expr *expr; /* NULL: there is none */
        struct eval eval;
        struct symbols_use *names; /* names that belong to the caller, released at the end of the slice */
        uint64_t steps, jobs;      /* used so far, in all slices of the call */
        /* The kind of the job that was evaluated last in this slice (core_job_kind); request 0: none. SEEN:
         * one job of it was; DIFFERS: its jobs may differ; else all have this result. */
        uint64_t request;
        uint32_t part;
        enum job_state state;
        enum { KIND_SEEN, KIND_DIFFERS, KIND_FAILS, KIND_HOLDS } found;
        /* Its template's ad, and what of the jobs of that template the constraint depends on
         * (core_job_scope). TEMPLATE and, in the same state, STATE: all have the result `shared`, once that
         * is known. */
        const struct ad *template_ad;
        enum core_scope scope;
        bool shared_known, shared;
        char *error; /* owned; NULL, or a sentence that says which limit was reached */
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
 * nothing in which they differ; and their template in place of a job, where it depends on that alone.
 * *ret_ad: the job's ad, the caller's, if it was made; else NULL. */
bool constraint_holds_job(struct constraint *x, struct core *core, uint64_t request, uint32_t member,
                          struct ad **ret_ad);
