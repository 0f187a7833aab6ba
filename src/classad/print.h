/* print: ads and expressions as text that parses back to the same. */
#pragma once
#include "classad/expr.h"

void expr_print(struct buf *out, const struct expr *e, const struct symbols *symbols);
void expr_print_clause(struct buf *out, const struct expr *e, unsigned n, const struct symbols *symbols);
/* NEW: one line, [ a = 1; b = 2 ]. OLD: a line an attribute, sorted by name. Own attributes only unless
 * with_parents, which adds those of its parents that it does not have. */
void ad_print(struct buf *out, const struct ad *ad, enum classad_syntax syntax, bool with_parents);
/* As a JSON object: literals become JSON values; other expressions "/Expr(text)/", as HTCondor writes them.
 */
void ad_print_json(struct buf *out, const struct ad *ad, bool with_parents);
/* A string as an expression: with quotes, and escapes where needed. */
void print_string(struct buf *out, struct str s);
