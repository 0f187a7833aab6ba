/* eval: evaluating expressions.
 *
 * An `eval` is the context of evaluations: an arena for strings and lists that they make, the time
 * that time() returns, a seed for random(), and limits. Make one and use it for many evaluations;
 * eval_reset() gives the arena back, and with it all values that were not copied. Evaluating numbers and
 * booleans allocates nothing. Evaluation never fails: its result is the value `error` instead. Bounds:
 * CLASSAD_DEPTH_MAX nested references, `steps_max` steps and `bytes_max` bytes of arena for one call, and,
 * where the caller has a clock, `time_max_ns`; past one, the result is error.
 *
 * A step is an amount of work: one operator, some 256 bytes of text that are looked at, or some sixteen moves
 * of a regular expression. Each function takes steps for what it does, so that no step costs more than a
 * microsecond (tests/bench/bench_steps.c looks for the worst).
 *
 * The functions eval() and splitTime() may add names to the ads' table of symbols: evaluations with one table
 * belong to one thread.
 */
#pragma once
#include "base/arena.h"
#include "classad/expr.h"

struct eval {
        struct arena arena;
        int64_t now_s;        /* Unix time told to time() and CurrentTime */
        uint64_t random;      /* state of random() */
        uint32_t steps_max;   /* default 1,000,000 */
        uint32_t steps_alone; /* steps_max of calls that share none; 0: they do not, see eval_share */
        size_t bytes_max;     /* of arena for one call; default 16 MiB */
        /* Nanoseconds of a clock that never goes back, or NULL: calls end by their steps alone. Asked once in
         * some thousand steps, so short calls never ask. */
        uint64_t (*clock_ns)(void);
        uint64_t time_max_ns; /* of one call, by clock_ns; default 50 ms */
        uint32_t steps;       /* taken by the current call */
        uint32_t steps_look;  /* number of steps at which the limits are checked next */
        uint64_t began_ns;    /* when clock_ns was first asked in this call; 0: not yet */
        /* NULL, or which limit made the last call an error: "depth", "steps", "memory", "time" */
        const char *limit_hit;
        uint64_t steps_all; /* of all calls */
        uint64_t overruns;  /* calls that a limit made an error */
};

void eval_init(struct eval *ev, int64_t now_s, uint64_t seed);
void eval_deinit(struct eval *ev);
void eval_reset(struct eval *ev); /* frees all values that evaluations made */
/* Begins a group of calls, up to eval_share_end, which together may take `steps_max` steps, for the
 * attributes of one ad whose author is trusted with no more. */
void eval_share(struct eval *ev);
void eval_share_end(struct eval *ev);

/* Evaluates e as if it stood in `my`, with the other ad `target` (either may be NULL). */
void eval_expr(struct eval *ev, const struct expr *e, const struct ad *my, const struct ad *target,
               struct value *ret);
/* Evaluates the attribute `name` of `my`; undefined when it has none. */
void eval_attr(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, struct value *ret);
/* Evaluates clause n (0..count-1) of a condition; see expr_clause_count. */
void eval_clause(struct eval *ev, const struct expr *e, unsigned n, const struct ad *my,
                 const struct ad *target, struct value *ret);

/* Typed shorthands: true and the value when the attribute evaluates to that type (numbers convert), else
 * false with *ret unchanged. A string is borrowed until eval_reset. */
bool eval_boolean(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, bool *ret);
bool eval_integer(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, int64_t *ret);
bool eval_real(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, double *ret);
bool eval_string(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, struct str *ret);
