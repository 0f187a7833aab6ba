/* body: checks the types in a request's JSON body against docs/openapi.json.
 *
 * The document is built into the server, so that it is the only table of field types. For each member that
 * the document describes, the check covers `type`, `minimum` and `maximum` of numbers, and `maxItems` of
 * lists. Members that the document does not describe are accepted. A route checks itself that required
 * members are there. */
#pragma once
#include "base/err.h"
#include "base/format/json_read.h"

struct bodies;
struct route;

/* Reads the document for the routes of a table, which is borrowed. An error in the document is a bug of
 * ours and ends the program. */
struct bodies *bodies_new(const struct route *routes, size_t count);
void bodies_free(struct bodies *b); /* accepts NULL */
/* Returns 0; or -EINVAL with an err that names the member and the expected type: "\"parts[3].steps\" must
 * be an integer, and is a string". */
int body_check(const struct bodies *b, const struct route *r, const json_t *body, struct err *err);
