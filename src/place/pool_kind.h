/* pool_kind: what a kind of places behind another server shows to jobs here, as part of a queue's ad.
 *
 * The other server says it, and is trusted with no more than its own places: an attribute counts when its
 * value is a literal and its name is none that this queue or its server speaks for; requirements count when
 * they can be read. All of it is printed anew from what was parsed. Pure.
 */
#pragma once
#include <stddef.h>

#include "base/buf.h"

/* Does the name stand for one place, for its load or its hour, or for what a queue says of itself? Then no
 * kind of places shows it. */
bool pool_kind_leaves_out(struct str name);

struct pool_kind_attribute {
        const char *name, *value;
};
/* Appends "a = 1; b = 2; " of those that count. */
void pool_kind_attributes(const struct pool_kind_attribute *v, size_t count, struct buf *out);
/* Appends the requirements; nothing when there are none, "false" when they cannot be read. */
void pool_kind_requirements(const char *text, struct buf *out);
