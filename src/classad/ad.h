/* ad: a ClassAd, a set of named expressions.
 *
 * Parsing compiles each expression once into a compact form (see expr.h); literals are stored as values. An
 * ad may have a parent ("chained ad"): a name that it does not have is looked for there, as if it stood in
 * this ad, so that a million jobs share one template. The parent is borrowed and must outlive the child.
 * Names are unique in an ad, without regard to case; setting one again replaces it. Not thread-safe; ads may
 * be read by several threads while none changes them.
 *
 * Sources: HTCondor manual, "ClassAd mechanism"; observed behaviour of HTCondor's library 25.x.
 */
#pragma once
#include "base/err.h"
#include "classad/symbols.h"
#include "classad/value.h"

struct expr;
struct ad;

/* Errors of a parse; all are positive, and err has one sentence with line and column. */
enum classad_error {
        CLASSAD_SYNTAX = 1, /* the text is not a ClassAd or expression */
        CLASSAD_TOO_DEEP,   /* nested deeper than CLASSAD_DEPTH_MAX */
        CLASSAD_TOO_BIG,    /* longer than CLASSAD_TEXT_MAX or more attributes than CLASSAD_ATTRIBUTES_MAX */
};

#define CLASSAD_DEPTH_MAX      400
#define CLASSAD_TEXT_MAX       (16u << 20) /* bytes of one ad */
#define CLASSAD_ATTRIBUTES_MAX 100000

enum classad_syntax {
        CLASSAD_ANY, /* parse only: new syntax if the first character that is not white space or comment is
                        '[' */
        CLASSAD_NEW, /* [ a = 1; b = 2 ] */
        CLASSAD_OLD, /* a line an attribute: a = 1 */
};

struct ad *ad_new(struct symbols *symbols);
void ad_free(struct ad *ad); /* NULL is fine */
struct symbols *ad_symbols(const struct ad *ad);
/* 0, or a classad_error; *ret_ad is the caller's to free. */
int ad_parse(struct symbols *symbols, struct str text, enum classad_syntax syntax, struct ad **ret_ad,
             struct err *err);
/* ad_parse for an ad that stands in a longer text, at *at: NEW reads the ad that begins there (after white
 * space and comments), OLD the lines from there up to an empty one, or the next that begins with "***". Lines
 * in err are those of the whole text. On success *at is moved behind the ad. CLASSAD_TEXT_MAX is for the ad
 * alone. */
int ad_parse_part(struct symbols *symbols, struct str text, size_t *at, enum classad_syntax syntax,
                  struct ad **ret_ad, struct err *err);
struct ad *ad_dup(const struct ad *ad); /* a deep copy with the same parent */
/* Returns the ad in one block of memory without room to grow, for one that is kept unchanged. Takes `ad`,
 * whose expressions and texts move. */
struct ad *ad_trim(struct ad *ad);

void ad_set_parent(struct ad *ad, const struct ad *parent); /* NULL: none */
const struct ad *ad_parent(const struct ad *ad);

void ad_set_boolean(struct ad *ad, symbol name, bool v);
void ad_set_integer(struct ad *ad, symbol name, int64_t v);
void ad_set_real(struct ad *ad, symbol name, double v);
void ad_set_string(struct ad *ad, symbol name, struct str v); /* copied */
void ad_set_undefined(struct ad *ad, symbol name);
/* Parses one expression (new syntax, strings with their quotes) and sets it. 0 or a classad_error; then
 * unchanged. */
int ad_set_text(struct ad *ad, symbol name, struct str text, struct err *err);
void ad_set_expr(struct ad *ad, symbol name, const struct expr *e); /* a copy; e is of the same table */
/* Sets the spelling with which an attribute that the ad has is printed, a result of symbols_spelling(). A new
 * attribute has the first spelling, unless it was parsed with the ad. */
void ad_set_spelling(struct ad *ad, symbol name, uint32_t spelling);
uint32_t ad_spelling(const struct ad *ad, symbol name); /* in this ad or its parents; 0 when it is absent */
void ad_remove(struct ad *ad, symbol name); /* from this ad itself, not from its parent; absent is fine */

/* Returns the expression of a name, in this ad or its parents; NULL: there is none. Borrowed until the ad
 * changes. */
const struct expr *ad_find(const struct ad *ad, symbol name);
const struct expr *ad_find_own(const struct ad *ad, symbol name); /* in this ad only */
/* Returns whether the name is bound to a literal (no evaluation needed), and its value. */
bool ad_literal(const struct ad *ad, symbol name, struct value *ret);
size_t ad_count(const struct ad *ad); /* attributes of its own */
/* Walks the ad's own attributes in the order they were set: uint32_t at = 0; while (ad_next(ad, &at, &name,
 * &expr)). */
bool ad_next(const struct ad *ad, uint32_t *at, symbol *ret_name, const struct expr **ret_expr);
size_t ad_bytes(const struct ad *ad); /* memory it holds */
