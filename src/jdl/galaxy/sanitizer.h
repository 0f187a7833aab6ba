/* sanitizer: what of a parameter's text gets into a tool's command.
 *
 * Galaxy lets letters, digits and some signs through and writes another text for the rest: __gt__ for >, and
 * so on, X for what it has no name for. A <sanitizer> in the <param> changes which characters are let through
 * and what is written for which. (Galaxy's tool XML, "sanitizer", "valid", "mapping".)
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/xml.h"

/* Appends the text as the sanitizer of this <param> leaves it; one without a <sanitizer> has Galaxy's own. 0;
 * -EINVAL with err "FILE:LINE: …": something in the <sanitizer> is not supported. */
int sanitizer_apply(const struct xml *param, struct str text, struct buf *out, struct err *err);
