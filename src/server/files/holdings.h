/* holdings: how many bytes of the spool each owner has, and how many he may have.
 *
 * What counts: his uploads that are under way, and the files that he uploaded, each content once, from their
 * upload until nothing of his needs them (objects.h). Each file counts in whole blocks, as it does on the
 * disk, so that a million empty ones are not free. What jobs deliver is not counted.
 *
 * Calls are thread-safe.
 */
#pragma once
#include "base/format/json.h"
#include "server/config/limits.h"
#include "spool/spool.h"

#define HOLDINGS_UPLOAD 8192u /* what an upload under way counts beside its bytes: two files */

enum holdings_error { HOLDINGS_FULL = 1 };

struct holdings;
/* The limits are copied. `otherwise`: bytes that an owner may have of whom they say nothing. The spool is
 * borrowed. */
struct holdings *holdings_new(struct spool *spool, const struct config_limits *limits, uint64_t otherwise);
void holdings_free(struct holdings *h); /* NULL is fine */

/* A file of the owner came in, or went. Sizes in bytes. */
void holdings_add(struct holdings *h, struct str owner, uint64_t size);
void holdings_take(struct holdings *h, struct str owner, uint64_t size);
/* Whether the owner may send so many bytes more. 0; HOLDINGS_FULL with an err that says how much the owner
 * has and may have, and what frees space. */
int holdings_check(struct holdings *h, struct str owner, uint64_t more, struct err *err);

/* Adds an array to the document, of {owner, bytes, uploading, max}: `who` first, and with `all` the others
 * that have files. */
void holdings_write(struct holdings *h, struct json *j, const char *who, bool all);
