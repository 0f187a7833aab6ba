/* share: a limited number of places among holders of whom any may want all.
 *
 * A holder may have no more than are still free, so one alone gets half of them, two get a third each, and so
 * on: nobody can keep the next one out. A holder is a name of the caller's choice. Not thread-safe.
 */
#pragma once
#include "base/str.h"

struct share;
struct share *share_new(size_t places);
void share_free(struct share *s); /* NULL is fine */

/* Takes a place; false when this holder has his share, or there are none. */
bool share_take(struct share *s, struct str holder);
void share_give(struct share *s, struct str holder); /* back: one that was taken */
size_t share_taken(const struct share *s);           /* by all */
