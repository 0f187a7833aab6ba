/* kinds: the kinds of places behind another server, as its answer to GET /v1/capacity?kinds=1 lists them,
 * bounded: at most RUN_KINDS_MAX kinds, of 200 attributes each, with no text or number larger than a place
 * can have. Texts are expressions, which only who evaluates them can read.
 */
#pragma once
#include "base/json_read.h"
#include "run/runner.h"

struct remote_kinds;
/* NULL: it is no list of kinds. */
struct remote_kinds *remote_kinds_read(const json_t *list);
void remote_kinds_free(struct remote_kinds *k); /* NULL is fine */
/* Sets what *ret has of kinds, which borrows from k. NULL: nothing is said of them. */
void remote_kinds_tell(const struct remote_kinds *k, struct run_capacity *ret);
