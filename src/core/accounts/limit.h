/* limit: named pools of units that running jobs draw on (licences, a file server's capacity, a user's share).
 *
 * A job names what it draws as HTCondor's concurrency limits are written: "sw:2, db". It runs only while
 * every pool that it names has so many units left. Names are without regard to case; one with a dot,
 * "large.matlab", that has no number of its own takes that of "large.*"; what has neither takes that of
 * "default"; and a pool without any number is counted and never full. Names with a slash are Drover's own
 * ("user/ann@local"); the number of their family is that of the name with a star behind the slash, and
 * "default" is not for them.
 *
 * What is in use is counted from the attempts that there are (draws_take, draws_give_back): it is in no
 * event and no snapshot, so a restart counts the same. Whoever could not have a unit stands in the pool's
 * line and is told when there may be one. Nothing here knows of jobs or classes.
 */
#pragma once
#include "base/err.h"
#include "base/map.h"

#define LIMIT_NAME_MAX  128u
#define LIMIT_DRAWS_MAX 32u /* pools that one job may name */
#define LIMIT_NONE      INT64_MAX

struct limit_waiter { /* zeroed: stands in no line */
        struct limit *limit;
        struct limit_waiter *next, *prev;
};
struct limit {
        char *name;   /* lower case */
        int64_t max;  /* LIMIT_NONE: as many as you like */
        int64_t used; /* by attempts */
        bool named;   /* in the settings by this name */
        bool kept;    /* was asked for by limits_get: it stays */
        unsigned refs;
        int64_t counted; /* zero outside charge_invariant */
        struct limit_waiter *line;
};
struct draw {
        struct limit *limit;
        int64_t units;
};
struct draws { /* what one job draws; the same text is the same object */
        unsigned refs;
        char *text; /* "db:1,sw:2": lower case, sorted, each pool once */
        size_t count;
        struct draw v[];
};

struct limits;
struct limits *limits_new(void);
void limits_free(struct limits *l); /* NULL is fine; all draws are given back and unreferenced by then */

/* The number of units of a pool, of all pools "prefix.*" without one of their own, or of "default". */
void limits_set(struct limits *l, struct str name, int64_t max);
struct limit *limits_get(struct limits *l, struct str name);        /* makes it; lives as long as l */
struct limit *limits_find(const struct limits *l, struct str name); /* NULL: nobody ever named it */
/* Calls fn for each pool that is named in the settings or in use, sorted by name. */
void limits_each(struct limits *l, void (*fn)(void *arg, struct limit *x), void *arg);

bool limits_bind(const struct limits *l); /* is something in use of any pool that has a number? */

/* 0 and a reference, which draws_unref ends (NULL: the text names nothing); or -EINVAL, -E2BIG with err.
 * `own`: names of Drover's own are allowed, as in records. */
int limits_parse(struct limits *l, struct str text, bool own, struct draws **ret, struct err *err);
struct draws *draws_ref(struct draws *d); /* NULL gives NULL, here and below */
void draws_unref(struct limits *l, struct draws *d);
/* How many more jobs that draw this may start now; *ret_short (may be NULL) is the pool that allows the
 * fewest, NULL when none is limited. UINT32_MAX: any number. */
uint32_t draws_room(const struct draws *d, struct limit **ret_short);
void draws_take(const struct draws *d);
/* Calls woken for everyone who stands in the line of a pool of it, after taking him out of the line. */
void draws_give_back(const struct draws *d, void (*woken)(void *arg, struct limit_waiter *w), void *arg);

uint32_t limit_room(const struct limit *x); /* for one unit each */
void limit_give_back(struct limit *x, int64_t units, void (*woken)(void *arg, struct limit_waiter *w),
                     void *arg);
void limit_wait(struct limit *x, struct limit_waiter *w); /* at most one line: leaves the one it was in */
void limit_leave(struct limit_waiter *w);                 /* no-op in no line */
