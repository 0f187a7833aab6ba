/* base64: bytes as text, as RFC 4648 has it: base64 of section 4 with padding, base64url of section 5
 * without. */
#pragma once
#include "base/buf.h"

void base64_encode(struct buf *out, struct str bytes); /* appended */
/* Appends the decoded bytes. 0; -EINVAL, with nothing appended: the text is not base64, or goes on after its
 * padding. */
int base64_decode(struct buf *out, struct str text);

void base64url_encode(struct buf *out, struct str bytes); /* appended */
/* Appends the decoded bytes. 0; -EINVAL, with nothing appended: the text is not base64url, or has padding. */
int base64url_decode(struct buf *out, struct str text);
