/* entities: replaces the entities of an XML text before it is read.
 *
 * Templates of SUMS have references (&run;) whose values come with the submit; others are declared at the
 * head of the text (<!DOCTYPE x [<!ENTITY run "12">]>). Only such values are known: external entities are
 * refused, and the size of the result is limited. The declarations become blanks, so that lines keep their
 * numbers. Pure.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define ENTITIES_MAX            1000u
#define ENTITIES_DEPTH_MAX      8u
#define ENTITIES_REFERENCES_MAX 100000u
#define ENTITIES_TEXT_MAX       (4u << 20) /* maximum bytes after replacement */

struct entity {
        struct str name, value; /* a value from the submit stands for its literal characters */
};

/* Returns whether an entity may have this name. */
bool entities_is_name(struct str s);
/* Replaces the entities; `given` takes precedence over the text's declarations. Returns 0; -EINVAL or -E2BIG
 * with err "FILE:LINE: ...". */
int entities_put_in(const char *file, struct str text, const struct entity *given, size_t count,
                    struct buf *ret, struct err *err);
