/* share: a limited number of places, shared fairly among holders of which each may want all.
 *
 * A holder may have at most as many places as are still free: one alone gets half of them, two get a third
 * each, and so on. No holder can keep the next one out. A holder is a name of the caller's choice. Not
 * thread-safe.
 */
#pragma once
#include "base/str.h"

struct share;
struct share *share_new(size_t places);
void share_free(struct share *s); /* NULL is fine */

/* Takes a place; false: this holder has its share, or no place is free. */
bool share_take(struct share *s, struct str holder);
void share_give(struct share *s, struct str holder); /* gives back a place that was taken */
size_t share_taken(const struct share *s);           /* places taken by all holders */
