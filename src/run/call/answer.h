/* answer: what is done to an answer of another program or server before it is read, shown or logged. */
#pragma once
#include "base/buf.h"
#include "base/str.h"

/* How many values a text of JSON has at most. A parser takes some hundred bytes for each. */
size_t answer_json_values(struct str text);
/* In place: what is not UTF-8, and the control characters behind ASCII's first ones, becomes '?'. */
void answer_make_utf8(struct str s);
/* Appends the first 400 bytes of a complaint as one line of UTF-8: line ends become blanks, or semicolons
 * where the next line begins with the same words up to a colon, which are left out then. */
void answer_clean(struct buf *out, struct str words);
