/* changes: a packed list of attributes that replace others of a job. An entry has the attribute's name,
 * whether its text has macros of the member (late), and the text; an entry without a text removes the
 * attribute. Names are compared without regard to case.
 */
#pragma once
#include "base/buf.h"

#define CHANGES_BYTES_MAX (64u << 10) /* size of a packed list */

struct submission_attribute;

/* Appends an entry; text STR_NONE: removes the attribute. late: the text has macros of the member. */
void changes_add(struct buf *out, struct str name, bool late, struct str text);
/* Reads the next entry, which borrows from *rest, and advances *rest. Returns false at the end and on damaged
 * data. */
bool changes_next(struct str *rest, struct submission_attribute *ret);
bool changes_ok(struct str changes); /* returns whether the list is undamaged and not empty */
/* Appends the entries of `old` that `new` does not replace, then those of `new`. */
void changes_merge(struct buf *out, struct str old, struct str new);
