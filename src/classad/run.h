/* run: the state of one evaluation, shared by eval.c, operators and functions (private to classad/). */
#pragma once
#include "classad/code.h"
#include "classad/eval.h"

/* An attribute whose evaluation is under way, to detect cycles. */
struct active {
        const struct node *nd;
        const struct ad *root;
        const struct active *below;
};

struct run {
        struct eval *ev;
        const struct ad *my;      /* the innermost ad that names are looked up in */
        const struct ad *target;  /* the other ad, or NULL */
        const struct ad *context; /* an ad of a list that an expression is evaluated in, or NULL */
        const struct active *active;
        const struct symbols *symbols;
        unsigned recursion;
};

#define RUN_RECURSION_MAX                                                                                    \
        4000 /* nested operators over all nested references: what a thread's stack holds                     \
              */

void run_node(struct run *r, const struct node *nd, struct value *ret);
void run_node_in(struct run *r, const struct node *nd, const struct ad *my, const struct ad *target,
                 struct value *ret);
/* The value of an attribute in these scopes: undefined when it leads back to itself. */
void run_attribute(struct run *r, const struct node *nd, const struct ad *my, const struct ad *target,
                   struct value *ret);
/* Takes n steps; false when there are none left. */
bool run_steps(struct run *r, size_t n);
#define RUN_TEXT  256u /* bytes of text that one step looks at or copies */
#define RUN_PRINT 8u   /* bytes that one step prints */

/* Takes the steps for scanning n bytes of text once; short texts take none. */
static inline bool run_bytes(struct run *r, size_t n)
{
        return n < RUN_TEXT || run_steps(r, n / RUN_TEXT);
}
/* Bytes that may be printed with the steps that are left: the max of a buf that run_printed takes. */
size_t run_print_max(const struct run *r);
bool run_printed(struct run *r, const struct buf *out, struct value *ret); /* as a string; takes the steps */
/* operator_binary that takes steps for long texts. */
void run_binary(struct run *r, enum op op, const struct value *x, const struct value *y, struct value *ret);
/* Allocates from the evaluation's arena; NULL: the limit is reached, and the whole evaluation is error. */
void *run_alloc(struct run *r, size_t n);
bool run_text(struct run *r, struct str s, struct value *ret); /* a copy as a string value */
void run_limit(struct run *r, const char *which);

void run_item(struct run *r, const struct value_list *list, uint32_t i, struct value *ret); /* i < list->n */
struct value_list *run_list(struct run *r, uint32_t n, struct value **ret_items); /* NULL past the limit */
void run_select(struct run *r, const struct value *from, symbol name, struct value *ret);

static inline const struct ad *run_root(const struct ad *ad)
{
        while (ad && ad->enclosing)
                ad = ad->enclosing;
        return ad;
}
