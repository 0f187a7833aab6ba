/* policies: what each placement policy would do with a request, for `drover submit --dry-run`. */
#pragma once
#include "cli/terminal/view.h"

/* Appends a table of the places with room for the first job, in the order in which each policy would give
 * jobs to them; nothing if no place has room. quote: an answer of POST /v1/quote. */
void policies_show(struct view quote, struct buf *out);
