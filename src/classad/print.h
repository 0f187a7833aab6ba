/* print: ads and expressions as text that parses back to the same. */
#pragma once
#include "classad/expr.h"

void expr_print(struct buf *out, const struct expr *e, const struct symbols *symbols);
void expr_print_clause(struct buf *out, const struct expr *e, unsigned n, const struct symbols *symbols);
/* NEW: one line, [ a = 1; b = 2 ]. OLD: a line an attribute, sorted by name. Own attributes only unless
 * with_parents, which adds those of its parents that it does not have. */
void ad_print(struct buf *out, const struct ad *ad, enum classad_syntax syntax, bool with_parents);
/* As a JSON object, in HTCondor's form: literals become JSON values, undefined null, nested ads objects;
 * other expressions are strings "\/Expr(text)\/". Strings that would be taken for one, or are not UTF-8, are
 * written as expressions, too. A name that is not UTF-8 is written with U+FFFD. Reads back with
 * ad_read_json(). */
void ad_print_json(struct buf *out, const struct ad *ad, bool with_parents);
/* The same with a line for each attribute of the ad's own, and an end of line behind it: as HTCondor writes
 * files of ads. */
void ad_print_json_lines(struct buf *out, const struct ad *ad);
/* As XML in HTCondor's form, <c> and a line for each <a>; see PRINT_XML_HEAD for what stands around ads.
 * Reads back with ad_read_xml(). */
void ad_print_xml(struct buf *out, const struct ad *ad, bool with_parents);
#define PRINT_XML_HEAD "<?xml version=\"1.0\"?>\n<!DOCTYPE classads SYSTEM \"classads.dtd\">\n<classads>\n"
#define PRINT_XML_FOOT "</classads>\n"
/* A string as an expression: with quotes, and escapes where needed. */
void print_string(struct buf *out, struct str s);
