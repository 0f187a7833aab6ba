/* pick: a submission made of an earlier one: all of its jobs again, or some of them, with other attributes.
 *
 * Jobs that are picked keep what $(Process), $(Step), $(Row) and the item variables came to, though they have
 * other numbers in the new request: each has a row of items with these values. What they waited for is over:
 * picked jobs depend on nothing, or (`graph`) on each other only, as they did.
 */
#pragma once
#include "base/arena.h"
#include "base/set.h"
#include "core/model/submission.h"

/* members: those that are picked; NULL: all. changes: packed (changes.h); empty: none. *ret borrows from
 * `from` and the arena; it has neither uuid nor owner, time, lease or origin. 0; -EINVAL, -E2BIG with err,
 * and then there is nothing to deinit. */
int submission_pick(const struct submission *from, const struct set *members, bool graph, struct str changes,
                    struct arena *arena, struct submission *ret, struct err *err);
