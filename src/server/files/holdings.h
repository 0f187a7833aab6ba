/* holdings: how many bytes of the spool each owner uses, and how many each may use.
 *
 * Two things count: uploads in progress; and uploaded files, each content once, from the upload until none
 * of the owner's requests needs it (objects.h). A file counts in whole blocks, as on the disk, so that a
 * million empty files are not free. Outputs of jobs do not count.
 *
 * All functions are thread-safe. */
#pragma once
#include "base/format/json.h"
#include "server/config/limits.h"
#include "spool/spool.h"

#define HOLDINGS_UPLOAD 8192u /* bytes that an upload in progress counts beside its content: two files */

enum holdings_error { HOLDINGS_FULL = 1 };

struct holdings;
/* The limits are copied. `otherwise`: bytes for owners without a limit of their own. The spool is
 * borrowed. */
struct holdings *holdings_new(struct spool *spool, const struct config_limits *limits, uint64_t otherwise);
void holdings_free(struct holdings *h); /* accepts NULL */

/* Counts a file that the owner added, or that was removed. Sizes in bytes. */
void holdings_add(struct holdings *h, struct str owner, uint64_t size);
void holdings_take(struct holdings *h, struct str owner, uint64_t size);
/* Checks whether the owner may upload this many bytes more. Returns 0; or HOLDINGS_FULL with an err that
 * says how much the owner has and may have, and how to free space. */
int holdings_check(struct holdings *h, struct str owner, uint64_t more, struct err *err);

/* Adds an array of {owner, bytes, uploading, max} to the document: first `who`, and with `all` the other
 * owners with files. */
void holdings_write(struct holdings *h, struct json *j, const char *who, bool all);
