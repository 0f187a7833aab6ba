/* entities: the entities of an XML text are put in, before it is read.
 *
 * Templates of SUMS have references (&run;) whose values come with the submit, others declare them at their
 * head (<!DOCTYPE x [<!ENTITY run "12">]>). Only such values are known: what lies in another file is refused,
 * and the text grows to so many bytes at most. The declarations become blanks, so that lines keep their
 * numbers. Pure.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define ENTITIES_MAX            1000u
#define ENTITIES_DEPTH_MAX      8u
#define ENTITIES_REFERENCES_MAX 100000u
#define ENTITIES_TEXT_MAX       (4u << 20) /* bytes of a text whose entities are in */

struct entity {
        struct str name, value; /* a value from outside stands for its characters, whatever they are */
};

/* A name that an entity may have. */
bool entities_is_name(struct str s);
/* `given` comes before what the text declares. 0; -EINVAL or -E2BIG with err "FILE:LINE: ...". */
int entities_put_in(const char *file, struct str text, const struct entity *given, size_t count,
                    struct buf *ret, struct err *err);
