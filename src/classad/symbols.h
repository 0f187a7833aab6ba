/* symbols: attribute names as small numbers.
 *
 * ClassAd names are case-insensitive; here every spelling of a name is one number, so that lookups compare
 * integers. One table serves all ads that meet each other: an ad remembers the table it was made with, and
 * ads of different tables never meet. Pure; not thread-safe.
 *
 * Names that users make up are counted, and forgotten when nobody has them any more. Who has them is a use:
 * as long as it is the table's current one, the names that are interned, by a parse too, are its. A name that
 * is learnt while there is no use, or of which somebody says so, is kept for good. What is interned while
 * there is no use, and was there, gets no further holder: that is for ads that somebody else's names outlive.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

struct symbols;
typedef uint32_t symbol; /* never 0 for a name; 0 says "no such name" */

struct symbols *symbols_new(void);
void symbols_free(struct symbols *s);
symbol symbols_intern(struct symbols *s, struct str name); /* adds it when new; keeps the first spelling */
symbol symbols_find(const struct symbols *s, struct str name); /* 0 when it was never interned */
struct str symbols_name(const struct symbols *s, symbol sym);  /* the first spelling; lives with the table */
/* How `written` differs from the first spelling of its symbol: a bit for each of the first 32 letters that is
 * in the other case. The same as long as the symbol is a name; 0 is the first spelling. */
uint32_t symbols_spelling(const struct symbols *s, symbol sym, struct str written);
/* Appends the name as it was written; letters from the 33rd on are those of the first spelling. */
void symbols_print(const struct symbols *s, symbol sym, uint32_t spelling, struct buf *out);
uint32_t symbols_count(const struct symbols *s);  /* symbols are 1..count; some may be free */
uint32_t symbols_used(const struct symbols *s);   /* of these, those that are names */
void symbols_keep(struct symbols *s, symbol sym); /* for good */

/* The names of one holder, e.g. of a template. Those that nobody had before are charged to the account of who
 * made them up until they are forgotten. */
struct symbols_use;
struct symbols_use *symbols_use_new(struct symbols *s, struct str account);
/* With so many names in its account this use learns no new ones: a parse with such fails with
 * CLASSAD_TOO_BIG. At first there is no limit. */
void symbols_use_limit(struct symbols_use *u, uint32_t max);
void symbols_use_free(
        struct symbols_use *u); /* not the current one; its names have no ads any more; NULL is fine */
/* Makes it the current one; NULL: none. Returns the one before, which the caller sets again. */
struct symbols_use *symbols_use_set(struct symbols *s, struct symbols_use *u);
bool symbols_use_full(const struct symbols_use *u); /* its account is */
/* For the names of ads that come from places: every one is kept for good. */
struct symbols_use *symbols_use_keep(struct symbols *s);
