/* place: what a queue says to a job, as JSON: for `why` and for quotes. */
#pragma once
#include "core/core.h"
#include "core/query.h"
#include "server/calls/call.h"

/* The members of the object, not its brackets: name, queue, verdict, what stands against it, and the terms of
 * the cost where it would take the job. `text`: in words, NULL: those of the verdict. */
void place_write(struct json *j, const struct core_why *w, const char *text);
/* "eta_error": {"count": …, "median_ms": …} */
void place_write_error(struct json *j, struct core *c);
