/* kinds: the kinds of places behind another server, from its answer to GET /v1/capacity?kinds=1.
 *
 * At most RUN_KINDS_MAX kinds of 200 attributes each are kept, and no text or number larger than a place can
 * have. Texts are ClassAd expressions, which are not parsed here.
 */
#pragma once
#include "base/format/json_read.h"
#include "run/runner.h"

struct remote_kinds;
/* Reads a list of kinds. NULL: it is not one. */
struct remote_kinds *remote_kinds_read(const json_t *list);
void remote_kinds_free(struct remote_kinds *k); /* NULL is fine */
/* Sets the kinds in *ret, which borrows from k. k NULL: the other server reports none. */
void remote_kinds_tell(const struct remote_kinds *k, struct run_capacity *ret);
