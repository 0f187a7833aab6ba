/* expr: one compiled expression. Made by ad_set_text, ad_parse or expr_parse, never changed afterwards. */
#pragma once
#include "classad/ad.h"

/* Parses one expression. 0 or a classad_error. *ret is the caller's to free with expr_free. */
int expr_parse(struct symbols *symbols, struct str text, struct expr **ret, struct err *err);
void expr_free(struct expr *e);

/* Appends an expression of the old syntax to out as the new one writes it, for expr_parse. The two differ in
 * string literals: in the old one a backslash stands for itself, unless a quote follows that does not end the
 * line (HTCondor manual, "ClassAd mechanism", and its library's ConvertEscapingOldToNew). Submit files and
 * HTCondor's command lines have the old syntax. */
void expr_text_from_old(struct str text, struct buf *out);
/* Appends what was printed in the new syntax (by expr_print or value_print) as the old one writes it, as
 * ad_print does with CLASSAD_OLD: quotes are the only escapes, and a line break becomes a space. */
void expr_text_to_old(struct str text, struct buf *out);

/* Returns whether the expression is a literal, and its value, as ad_literal. `e` may also stand in an ad. */
bool expr_literal(const struct expr *e, struct value *ret);

/* Number of clauses of a condition: the operands of its topmost &&. A condition without && is one clause. */
unsigned expr_clause_count(const struct expr *e);

/* Reports the names that a condition can depend on, following references through `my` and its parents:
 * own: names that are looked up in one's own ad (whether found or not found and not qualified);
 * target: names looked up in the other ad: target.X, and bare names that `my` does not have.
 * Each name is reported once. uses_time: calls time() or uses CurrentTime; uses_random: calls random();
 * uses_more: looks at an ad as a whole, or evaluates text, so that it may depend on names that were not
 * reported. */
struct expr_uses {
        bool uses_time, uses_random, uses_more;
};
typedef void expr_reference_fn(void *arg, symbol name, bool target);
void expr_references(const struct expr *e, const struct ad *my, expr_reference_fn *fn, void *arg,
                     struct expr_uses *ret_uses);
/* expr_references that visits at most *nodes nodes of expressions and leaves the unused number in *nodes. 0:
 * not all names were reported. */
void expr_references_within(const struct expr *e, const struct ad *my, expr_reference_fn *fn, void *arg,
                            struct expr_uses *ret_uses, uint32_t *nodes);
/* expr_references for one clause, 0..count-1. */
void expr_clause_references(const struct expr *e, unsigned n, const struct ad *my, expr_reference_fn *fn,
                            void *arg, struct expr_uses *ret_uses);
