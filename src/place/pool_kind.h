/* pool_kind: attributes and requirements of a kind of places behind another server, as part of a queue's ad.
 *
 * The other server states them, and is trusted about its own places only: an attribute is accepted if its
 * value is a literal and its name is not one that this queue or its server sets; requirements are accepted
 * if they can be parsed. Everything is printed anew from the parsed form. Pure.
 */
#pragma once
#include <stddef.h>

#include "base/buf.h"

/* Returns whether the name describes a single place, its load or its time, or is one that a queue sets
 * itself. Such an attribute is never accepted. */
bool pool_kind_leaves_out(struct str name);

struct pool_kind_attribute {
        const char *name, *value;
};
/* Appends "a = 1; b = 2; " for the accepted attributes. */
void pool_kind_attributes(const struct pool_kind_attribute *v, size_t count, struct buf *out);
/* Appends the requirements; nothing if there are none, "false" if they cannot be parsed. */
void pool_kind_requirements(const char *text, struct buf *out);
