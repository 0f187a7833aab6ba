/* owners: whose jobs a place runs, as agents offer it and tokens allow it. One rule for the matching, for
 * `why`, for capacity, for the delivery of user logs, and for what an agent may read.
 *
 * A list has entries of three kinds: "name@domain"; "*@domain", everybody there; and "!name@domain why not",
 * who is excepted, with what he is told, wherever in the list it stands. A list without entries is everybody.
 * One that has only exceptions is nobody. Comparison is exact. Pure.
 */
#pragma once
#include "base/buf.h"

struct owners {
        struct str *items; /* of whoever has the list; owners_add copies */
        size_t count;
};

bool owners_allow(const struct owners *l, struct str owner);
/* Why this owner in particular is excepted, "" when that is not said; p is NULL when he is not. */
struct str owners_deny(const struct owners *l, struct str owner);
/* May more than one owner be allowed? */
bool owners_are_many(const struct owners *l);

/* Adds a copy. */
void owners_add(struct owners *l, struct str entry);
/* Those that both lists allow, as a new list; all exceptions stay in it. When nobody is left it is
 * OWNERS_NOBODY. */
void owners_cut(const struct owners *l, const struct owners *ceiling, struct owners *ret);
#define OWNERS_NOBODY STR("!")
/* A text of a token: entries parted by commas or blanks; "any" is everybody. False when one is neither
 * name@domain nor *@domain; *ret is to be freed in both cases. */
bool owners_parse(struct str text, struct owners *ret);
void owners_deinit(struct owners *l); /* of a list whose items were copied */
