/* limit: named pools of units that running jobs draw on (licences, a file server's capacity, a user's share).
 *
 * A job names its draws as HTCondor's concurrency limits are written: "sw:2, db". It runs only while every
 * named pool has that many units left. Names are compared without regard to case. A name with a dot,
 * "large.matlab", without a number of its own uses that of "large.*"; otherwise the number of "default" is
 * used; a pool without any number is counted and never full. Names with a slash are reserved for Drover
 * ("user/ann@local"); their default is the number of the name with a star after the slash, and "default" does
 * not apply to them.
 *
 * Use is counted from existing attempts (draws_take, draws_give_back), not from events or snapshots, so a
 * restart counts the same. A waiter that could not have a unit stands in the pool's line and is told when
 * there may be one. This module does not know jobs or classes.
 */
#pragma once
#include "base/err.h"
#include "base/map.h"

#define LIMIT_NAME_MAX  128u
#define LIMIT_DRAWS_MAX 32u /* pools that one job may name */
#define LIMIT_NONE      INT64_MAX

struct limit_waiter { /* all zero: in no line */
        struct limit *limit;
        struct limit_waiter *next, *prev;
};
struct limit {
        char *name;   /* lower case */
        int64_t max;  /* LIMIT_NONE: no limit */
        int64_t used; /* by attempts */
        bool named;   /* in the settings under this name */
        bool kept;    /* returned by limits_get: never freed */
        unsigned refs;
        int64_t counted; /* used by charge_invariant only, otherwise zero */
        struct limit_waiter *line;
};
struct draw {
        struct limit *limit;
        int64_t units;
};
struct draws { /* the draws of one job; the same text is the same object */
        unsigned refs;
        char *text; /* "db:1,sw:2": lower case, sorted, each pool once */
        size_t count;
        struct draw v[];
};

struct limits;
struct limits *limits_new(void);
void limits_free(struct limits *l); /* NULL is fine; all draws must have been given back and unreferenced */

/* Sets the number of units of a pool, of pools "prefix.*" without a number of their own, or of "default". */
void limits_set(struct limits *l, struct str name, int64_t max);
/* Sets the number of units of one pool, which limits_get has returned, without a look at others. */
void limits_set_one(struct limits *l, struct limit *x, int64_t max);
/* Takes that number back; x is invalid afterwards. Its attempts must have ended. */
void limits_unset(struct limits *l, struct limit *x);
/* Finds or creates the pool; valid as long as l, or until limits_unset. */
struct limit *limits_get(struct limits *l, struct str name);
struct limit *limits_find(const struct limits *l, struct str name); /* NULL: never named */
/* Calls fn for each pool that is named in the settings or in use, sorted by name. */
void limits_each(struct limits *l, void (*fn)(void *arg, struct limit *x), void *arg);

bool limits_bind(const struct limits *l); /* returns whether a pool with a number is in use */

/* Parses the draws of a job. Returns 0 with a reference in *ret, which draws_unref drops (NULL: the text
 * names nothing); -EINVAL or -E2BIG with err. own: names with a slash are allowed, as in records. */
int limits_parse(struct limits *l, struct str text, bool own, struct draws **ret, struct err *err);
struct draws *draws_ref(struct draws *d); /* NULL gives NULL, here and below */
void draws_unref(struct limits *l, struct draws *d);
/* Returns how many more jobs with these draws may start now; UINT32_MAX: no limit. *ret_short (may be NULL):
 * the pool that allows the fewest; NULL when none is limited. */
uint32_t draws_room(const struct draws *d, struct limit **ret_short);
/* Counts the units of one started job as used; d may be NULL. */
void draws_take(const struct draws *d);
/* Returns the units, and calls woken for every waiter in the lines of these pools, after taking it out of the
 * line. */
void draws_give_back(const struct draws *d, void (*woken)(void *arg, struct limit_waiter *w), void *arg);

uint32_t limit_room(const struct limit *x); /* for jobs that draw one unit */
void limit_give_back(struct limit *x, int64_t units, void (*woken)(void *arg, struct limit_waiter *w),
                     void *arg);
/* Puts w in the pool's line, and out of the line that it was in. */
void limit_wait(struct limit *x, struct limit_waiter *w);
void limit_leave(struct limit_waiter *w); /* no-op if w is in no line */
