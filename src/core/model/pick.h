/* pick: makes a submission from an earlier one, with all or some of its jobs, and with other attributes.
 *
 * Picked jobs keep the values of $(Process), $(Step), $(Row) and the item variables, though their numbers in
 * the new request differ: each has a row of items with these values. Dependencies are dropped, except those
 * between picked jobs if `graph` is set.
 */
#pragma once
#include "base/arena.h"
#include "base/set.h"
#include "core/model/submission.h"

/* members: the picked members; NULL: all. changes: packed (changes.h); empty: none. *ret borrows from `from`
 * and the arena, and has no uuid, owner, time, lease or origin; the caller sets them. Returns 0; -EINVAL or
 * -E2BIG with err, with nothing to deinit. */
int submission_pick(const struct submission *from, const struct set *members, bool graph, struct str changes,
                    struct arena *arena, struct submission *ret, struct err *err);
