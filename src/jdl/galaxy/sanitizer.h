/* sanitizer: filters a parameter's text before it becomes part of a tool's command.
 *
 * Galaxy lets letters, digits and some signs through and writes another text for the rest: __gt__ for >, and
 * so on, X for characters without such a name. A <sanitizer> in the <param> changes which characters are let
 * through and their replacements. (Galaxy's tool XML, "sanitizer", "valid", "mapping".)
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/format/xml.h"

/* Appends the text as filtered by the sanitizer of this <param>, by default Galaxy's own. Returns 0; -EINVAL
 * with err "FILE:LINE: …": a part of the <sanitizer> is not supported. */
int sanitizer_apply(const struct xml *param, struct str text, struct buf *out, struct err *err);
