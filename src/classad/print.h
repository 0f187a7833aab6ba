/* print: ads and expressions as text that parses back to the same. */
#pragma once
#include "classad/expr.h"

void expr_print(struct buf *out, const struct expr *e, const struct symbols *symbols);
void expr_print_clause(struct buf *out, const struct expr *e, unsigned n, const struct symbols *symbols);
/* NEW: one line, [ a = 1; b = 2 ]. OLD: a line an attribute, sorted by name. Own attributes only unless
 * with_parents, which adds those of its parents that it does not have. */
void ad_print(struct buf *out, const struct ad *ad, enum classad_syntax syntax, bool with_parents);
/* Prints an ad as a JSON object in HTCondor's form: literals become JSON values, undefined null, nested ads
 * objects; other expressions are strings "\/Expr(text)\/". Strings that would be taken for such an
 * expression, or are not UTF-8, are written as expressions, too. A name that is not UTF-8 is written with
 * U+FFFD. ENCODING_JSON of read.h reads the result. */
void ad_print_json(struct buf *out, const struct ad *ad, bool with_parents);
/* Prints the ad's own attributes as a JSON object with a line for each, ended by a line feed, as HTCondor
 * writes files of ads. */
void ad_print_json_lines(struct buf *out, const struct ad *ad);
/* Prints an ad as XML in HTCondor's form, <c> and a line for each <a>; PRINT_XML_HEAD and PRINT_XML_FOOT go
 * around all ads. ENCODING_XML of read.h reads the result. */
void ad_print_xml(struct buf *out, const struct ad *ad, bool with_parents);
#define PRINT_XML_HEAD "<?xml version=\"1.0\"?>\n<!DOCTYPE classads SYSTEM \"classads.dtd\">\n<classads>\n"
#define PRINT_XML_FOOT "</classads>\n"
/* Prints a string as a literal: with quotes, and escapes where needed. */
void print_string(struct buf *out, struct str s);
