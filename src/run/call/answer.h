/* answer: makes an answer of another program or server safe before it is read, shown or logged. */
#pragma once
#include "base/buf.h"
#include "base/str.h"

/* Returns an upper bound on the number of values in a JSON text. A parser uses some hundred bytes for each.
 */
size_t answer_json_values(struct str text);
/* Replaces in place each byte that is not UTF-8, and DEL and the C1 control characters, by '?'. */
void answer_make_utf8(struct str s);
/* Appends the first 400 bytes of a complaint as one line of UTF-8: line ends become blanks, or semicolons
 * where the next line begins with the same words up to a colon, which are left out then. */
void answer_clean(struct buf *out, struct str words);
