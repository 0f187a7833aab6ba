/* handover: what a job requires of a place, as it goes along to another server.
 *
 * A clause of Requirements that looks at what only this queue says of itself (its names, its runner, what its
 * file adds to its ad) has been decided by the match here: no place behind the other server says the same.
 * Such clauses stay here; all others go along and are asked again there. Pure.
 */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct handover_attribute { /* of the job; value: an expression */
        const char *name, *value;
};
/* Appends the clauses that go along, "true" where none does. own: what the queue's file adds to its ad, "a =
 * 1; b = 2"; NULL: nothing. 0, or -EINVAL with err: `requirements` cannot be read. */
int handover_requirements(const char *requirements, const struct handover_attribute *attributes, size_t count,
                          const char *own, struct buf *out, struct err *err);
