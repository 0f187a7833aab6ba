/* handover: the requirements of a job when it is delegated to another server.
 *
 * A clause of Requirements that refers to attributes of this queue only (its names, its runner, attributes
 * from its file) has been decided by the match here, because no place behind the other server has these
 * attributes. Such clauses are removed; all others are passed on and evaluated again there. Pure.
 */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct handover_attribute { /* an attribute of the job; value: an expression */
        const char *name, *value;
};
/* Appends the clauses to pass on, "true" if there are none. own: attributes that the queue's file adds to
 * its ad, "a = 1; b = 2"; NULL: none. Returns 0, or -EINVAL with err: `requirements` cannot be parsed. */
int handover_requirements(const char *requirements, const struct handover_attribute *attributes, size_t count,
                          const char *own, struct buf *out, struct err *err);
