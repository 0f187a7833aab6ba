/* owners: lists of the owners whose jobs a place runs, as agents offer and tokens allow. Matching, `why`,
 * capacity, the delivery of user logs and the access checks of agents all use this one rule.
 *
 * A list has entries of three kinds: "name@domain"; "*@domain", everybody of that domain; and "!name@domain
 * reason", an exception, with the reason that this owner is told, anywhere in the list. A list without
 * entries allows everybody, one with exceptions only allows nobody. Comparison is exact. Pure.
 */
#pragma once
#include "base/buf.h"

struct owners {
        struct str *items; /* owned by the list's owner; owners_add copies */
        size_t count;
};

bool owners_allow(const struct owners *l, struct str owner);
/* Returns the reason of this owner's exception, "" if none is given; p is NULL when the owner is not
 * excepted. */
struct str owners_deny(const struct owners *l, struct str owner);
/* Returns whether more than one owner may be allowed. */
bool owners_are_many(const struct owners *l);

/* Adds a copy of the entry. */
void owners_add(struct owners *l, struct str entry);
/* Makes a new list of the owners that both lists allow, with all exceptions of both. If nobody is left, the
 * list is OWNERS_NOBODY. */
void owners_cut(const struct owners *l, const struct owners *ceiling, struct owners *ret);
#define OWNERS_NOBODY STR("!")
/* Parses a token's text: entries separated by commas or blanks; "any" allows everybody. False if an entry is
 * neither name@domain nor *@domain; *ret is to be freed in both cases. */
bool owners_parse(struct str text, struct owners *ret);
void owners_deinit(struct owners *l); /* of a list whose items were copied */
