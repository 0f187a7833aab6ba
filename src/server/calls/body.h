/* body: the types of what a route's body says, as docs/openapi.json describes them.
 *
 * The document is built into the server, so it is the one table of field types there is. Checked are `type`,
 * of numbers `minimum` and `maximum`, of lists `maxItems`, in all members that are described; members that
 * are not described are of nobody's concern, and what must be there is the route's to ask for.
 */
#pragma once
#include "base/err.h"
#include "base/format/json_read.h"

struct bodies;
struct route;

/* Reads the document for the routes of a table, which is borrowed. A document of ours that is wrong ends the
 * program. */
struct bodies *bodies_new(const struct route *routes, size_t count);
void bodies_free(struct bodies *b); /* NULL is fine */
/* 0; -EINVAL with an err that names the member and what is expected: "\"parts[3].steps\" must be an integer,
 * and is a string". */
int body_check(const struct bodies *b, const struct route *r, const json_t *body, struct err *err);
