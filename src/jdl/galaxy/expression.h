/* expression: the expressions of Galaxy's templates and filters: a subset of Python's, with or without a $
 * before names.
 *
 * Supported are literals, names, .attribute, [index], or and not, comparisons, in, is, + - * / // %, x if
 * c else y, lists and their comprehensions; str int float len bool range enumerate zip min max abs sorted;
 * for a text strip lstrip rstrip split join replace lower upper startswith endswith; for a list append and
 * extend; for a dict get keys values items; for a dataset is_of_type. Anything else is an error that names
 * it. Expressions are evaluated directly from the text; steps and sizes are limited, so that no expression
 * runs for long. */
#pragma once
#include "jdl/galaxy/datum.h"

#define EXPRESSION_STEPS_MAX 1000000u
#define EXPRESSION_TEXT_MAX  (1u << 20) /* maximum bytes of a text value */

struct expressions { /* variables and limits of an evaluation */
        struct arena *arena;
        struct datum *names; /* a DATUM_MAP */
        unsigned steps;      /* steps taken so far */
        unsigned depth;
        bool filter; /* as in filters, a missing parameter is Python's None */
        /* Calls a function that a template has defined; set by template_render, as what follows. */
        int (*call)(struct expressions *x, const struct datum *function, const struct datum *arguments,
                    struct datum **ret, struct err *err);
        struct datum *shared; /* a DATUM_MAP: the variables that such functions find */
        unsigned calls;       /* of such functions, in each other */
};

/* Evaluates the expression at the beginning of s; *ret_used: its length in bytes. Returns 0; -EINVAL or
 * -E2BIG with err, a message without a position. */
int expression_read(struct expressions *x, struct str s, struct datum **ret, size_t *ret_used,
                    struct err *err);
/* Like expression_read; several expressions with commas between them are a tuple. */
int expression_values(struct expressions *x, struct str s, struct datum **ret, size_t *ret_used,
                      struct err *err);
/* Like expression_read, for the whole of s. */
int expression_all(struct expressions *x, struct str s, struct datum **ret, struct err *err);
/* Evaluates a placeholder of a template's text, given without its $: a name with what directly follows it
 * (.attribute, [index], (arguments)). */
int expression_place(struct expressions *x, struct str s, struct datum **ret, size_t *ret_used,
                     struct err *err);
/* computes a + b */
int expression_add(struct expressions *x, struct datum *a, struct datum *b, struct datum **ret,
                   struct err *err);
/* Makes a value of a text that was built in a buffer of at most EXPRESSION_TEXT_MAX bytes. -E2BIG with err:
 * the text did not fit. */
int expression_text(struct expressions *x, struct buf *text, struct datum **ret, struct err *err);
/* The left side of an assignment: a variable, an element as in name[index], or several targets, which take
 * the items of a list. The strings are borrowed from the text that was read, and `items` from the
 * expressions' arena. */
#define EXPRESSION_TARGETS_MAX 8
struct expression_target {
        struct str name;  /* empty: several */
        struct str of;    /* an element: the text of the list or dict; else empty */
        struct str index; /* the text of its index, and what follows it */
        struct expression_target *items;
        size_t n;
};
/* Reads the targets at the beginning of s, such as "$x, ($y, $z['a'])"; *ret_used: how many bytes they take.
 * Returns 0; -EINVAL with err. */
int expression_target_read(struct expressions *x, struct str s, struct expression_target *ret,
                           size_t *ret_used, struct err *err);
/* Assigns a value; shared: to x->shared as well. Returns 0; -EINVAL with err, after which some of several
 * targets may have their value; -E2BIG with err: there are too many variables. */
int expression_bind(struct expressions *x, const struct expression_target *t, struct datum *v, bool shared,
                    struct err *err);
/* Gives the values that a for iterates over: the items of a list, the keys of a dict. -EINVAL with err: the
 * value is neither. */
int expression_iterate(struct expressions *x, struct datum *over, struct datum **ret_list, struct err *err);
