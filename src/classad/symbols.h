/* symbols: attribute names as small numbers.
 *
 * ClassAd names are case-insensitive; here every spelling of a name is one number, so that lookups compare
 * integers. One table serves all ads that meet each other: an ad remembers the table it was made with, and
 * ads of different tables never meet. Symbols are never freed before the table is. Pure; not thread-safe.
 */
#pragma once
#include "base/str.h"

struct symbols;
typedef uint32_t symbol; /* never 0 for a name; 0 says "no such name" */

struct symbols *symbols_new(void);
void symbols_free(struct symbols *s);
symbol symbols_intern(struct symbols *s, struct str name); /* adds it when new; keeps the first spelling */
symbol symbols_find(const struct symbols *s, struct str name); /* 0 when it was never interned */
struct str symbols_name(const struct symbols *s, symbol sym);  /* the first spelling; lives with the table */
uint32_t symbols_count(const struct symbols *s);               /* symbols are 1..count */
