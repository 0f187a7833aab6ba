/* answers: what another server answers: JSON, and sentences for people. */
#pragma once
#include "base/buf.h"
#include "base/json_read.h"

/* A body as JSON; NULL: it is none, or has more values than an answer can need. */
json_t *remote_json(struct str body);
/* Appends a text of another server as one line of UTF-8 without control characters, and not too long. */
void remote_words(struct buf *out, struct str words);
/* The sentence of an answer that is a refusal. */
void remote_error(struct buf *out, int status, struct str body);
/* A refusal that is none for good: its disk is full, it is stopping or restarted, our token is a new one by
 * then. */
static inline bool remote_later(int status)
{
        return status == 401 || status == 429 || (status >= 502 && status <= 504);
}
