/* url: percent-encoding (RFC 3986, section 2). */
#pragma once
#include "base/buf.h"

/* Returns whether c is an ASCII letter, a digit or one of "-._~". */
bool url_unreserved(unsigned char c);
/* Appends text with everything but unreserved characters as %XX. */
void url_escape(struct buf *out, struct str text);
