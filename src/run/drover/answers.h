/* answers: reads another server's answers, which are JSON with sentences for people. */
#pragma once
#include "base/buf.h"
#include "base/format/json_read.h"

/* Parses a body as JSON; NULL: it is not JSON, or has more values than any valid answer. */
json_t *remote_json(struct str body);
/* Appends a text of another server as one line of UTF-8 without control characters, shortened to a bounded
 * length. */
void remote_words(struct buf *out, struct str words);
/* Appends the message of a refusal. */
void remote_error(struct buf *out, int status, struct str body);
/* Returns whether a refusal is temporary: the server's disk is full, it is stopping or restarting, or the
 * token is about to be renewed. */
static inline bool remote_later(int status)
{
        return status == 401 || status == 429 || (status >= 502 && status <= 504);
}
