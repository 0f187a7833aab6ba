/* expression: the expressions of Galaxy's templates and filters: a part of Python's, with a $ before names or
 * without.
 *
 * Literals, names, .attribute, [index], or and not, comparisons, in, is, + - * / // %, x if c else y, lists
 * and their comprehensions; str int float len bool range enumerate zip min max abs sorted; of a text strip
 * lstrip rstrip split join replace lower upper startswith endswith; of a list append and extend; of a dict
 * get keys values items; of a dataset is_of_type. Anything else is an error that names it. Evaluated straight
 * from the text; steps and sizes are limited, so that no expression runs for long.
 */
#pragma once
#include "jdl/galaxy/datum.h"

#define EXPRESSION_STEPS_MAX 1000000u
#define EXPRESSION_TEXT_MAX  (1u << 20) /* bytes of a text value */

struct expressions { /* variables, and what an evaluation may use up */
        struct arena *arena;
        struct datum *names; /* a DATUM_MAP */
        unsigned steps;      /* so far */
        unsigned depth;
};

/* Evaluates what s begins with, as far as it is an expression; *ret_used: its bytes. 0; -EINVAL or -E2BIG
 * with err, which says what is wrong without a place. */
int expression_read(struct expressions *x, struct str s, struct datum **ret, size_t *ret_used,
                    struct err *err);
/* The same of all of s. */
int expression_all(struct expressions *x, struct str s, struct datum **ret, struct err *err);
/* A placeholder, s without its $: a name with what follows it directly (.attribute, [index], (arguments)), as
 * templates have it in text. */
int expression_place(struct expressions *x, struct str s, struct datum **ret, size_t *ret_used,
                     struct err *err);
/* a + b */
int expression_add(struct expressions *x, struct datum *a, struct datum *b, struct datum **ret,
                   struct err *err);
/* A text that was built in a buffer of at most EXPRESSION_TEXT_MAX bytes. -E2BIG with err: it did not fit. */
int expression_text(struct expressions *x, struct buf *text, struct datum **ret, struct err *err);
/* For x, y in EXPRESSION: names are set by expression_bind. */
#define EXPRESSION_TARGETS_MAX 8
struct expression_targets {
        struct str names[EXPRESSION_TARGETS_MAX];
        size_t n;
};
int expression_targets(struct expressions *x, struct str s, struct expression_targets *ret, size_t *ret_used,
                       struct err *err);
int expression_bind(struct expressions *x, const struct expression_targets *t, struct datum *item,
                    struct err *err);
/* What a for goes through: the items of a list, the keys of a dict. -EINVAL with err: it is neither. */
int expression_iterate(struct expressions *x, struct datum *over, struct datum **ret_list, struct err *err);
