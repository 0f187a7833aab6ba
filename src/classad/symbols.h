/* symbols: attribute names as small numbers.
 *
 * ClassAd names are case-insensitive; here every spelling of a name is one number, so that lookups compare
 * integers. One table serves all ads that meet each other: an ad remembers the table it was made with, and
 * ads of different tables never meet. Pure; not thread-safe.
 *
 * Names that users invent are reference-counted, and forgotten when no use holds them any more. A use is a
 * holder of names: while it is the table's current use, it holds each name that is interned, by a parse too.
 * A new name that is interned while there is no current use, or that symbols_keep names, is kept for good. A
 * known name that is interned while there is no current use gets no further holder: the ads made then must
 * not outlive the name's present holders.
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
/* Returns the spelling of a name as it was written, for symbols_print(); 0 is the first spelling. In a name
 * of at most 32 letters it is a bit for each letter that is in the other case. Another spelling of a longer
 * name is added to the table when it is new, and is held, charged and forgotten as names are. The number is
 * valid as long as the symbol, interned under the same use, is a name. */
uint32_t symbols_spelling(struct symbols *s, symbol sym, struct str written);
/* Returns whether the table has the name and this spelling of it: interning them adds nothing. */
bool symbols_known(const struct symbols *s, struct str written);
/* Appends the name as it was written. */
void symbols_print(const struct symbols *s, symbol sym, uint32_t spelling, struct buf *out);
uint32_t symbols_count(const struct symbols *s); /* symbols, and spellings, are 1..count; some may be free */
uint32_t symbols_used(
        const struct symbols *s); /* number of names now, and of spellings that count as names */
void symbols_keep(struct symbols *s, symbol sym); /* for good */

/* A use: the names of one holder, e.g. of a template. Names that no use held before are charged to this use's
 * account until they are forgotten. */
struct symbols_use;
struct symbols_use *symbols_use_new(struct symbols *s, struct str account);
/* Sets the number of names in its account from which this use takes no new names: a parse with a new name
 * fails with CLASSAD_TOO_BIG. Initially there is no limit. */
void symbols_use_limit(struct symbols_use *u, uint32_t max);
void symbols_use_free(
        struct symbols_use *u); /* not the current one; its names have no ads any more; NULL is fine */
/* Makes u the current use; NULL: none. Returns the previous one, which the caller sets again. */
struct symbols_use *symbols_use_set(struct symbols *s, struct symbols_use *u);
bool symbols_use_full(const struct symbols_use *u); /* whether its account is at the limit */
/* Returns the use for ads that come from places: each of its names is kept for good. */
struct symbols_use *symbols_use_keep(struct symbols *s);
