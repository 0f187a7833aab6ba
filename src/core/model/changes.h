/* changes: attributes that jobs are to have in place of others, packed: of each the name, whether it is late,
 * and its text; without a text the attribute is taken away. Names are compared without regard to case. */
#pragma once
#include "base/buf.h"

#define CHANGES_BYTES_MAX (64u << 10) /* packed */

struct submission_attribute;

void changes_add(struct buf *out, struct str name, bool late, struct str text);
/* The next one, which borrows from *rest; *rest is moved behind it. False: at the end, or damaged. */
bool changes_next(struct str *rest, struct submission_attribute *ret);
bool changes_ok(struct str changes); /* there is at least one, and nothing is damaged */
/* Appends the old ones that the new ones do not replace, and the new ones. */
void changes_merge(struct buf *out, struct str old, struct str new);
