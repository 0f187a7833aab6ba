/* place: writes what a queue answers to a job, as JSON, for `why` and for quotes. */
#pragma once
#include "core/core.h"
#include "core/query.h"
#include "server/calls/call.h"

/* Writes the members of an object: name, queue, verdict, the reasons against it, and the terms of the cost
 * if the queue would take the job. `text`: a sentence; NULL: the one of the verdict. */
void place_write(struct json *j, const struct core_why *w, const char *text);
/* "eta_error": {"count": …, "median_ms": …} */
void place_write_error(struct json *j, struct core *c);
