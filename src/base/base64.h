/* base64: bytes as text, as RFC 4648 section 4 has it, with padding. */
#pragma once
#include "base/buf.h"

void base64_encode(struct buf *out, struct str bytes); /* appended */
/* Appends the bytes. 0; -EINVAL, and nothing is appended: that is no base64, or has more behind its end. */
int base64_decode(struct buf *out, struct str text);
