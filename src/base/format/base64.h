/* base64: bytes as text, as RFC 4648 section 4 has it, with padding. */
#pragma once
#include "base/buf.h"

void base64_encode(struct buf *out, struct str bytes); /* appended */
/* Appends the decoded bytes. 0; -EINVAL, with nothing appended: the text is not base64, or goes on after its
 * padding. */
int base64_decode(struct buf *out, struct str text);
