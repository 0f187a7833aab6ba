/* submit: what other doors than POST /v1/requests have the server accept. */
#pragma once
#include "server/calls/call.h"

/* I/O thread: writes the reply of a request that is durable, into c->out, and ends with call_reply. */
typedef void submit_reply_fn(struct call *c, uint64_t id);
/* I/O thread or reader: goes on as POST /v1/requests does with this document, which is taken; its body_check
 * is not made. The call has no state, and gets one; what is wrong ends it. */
void submit_document(struct call *c, json_t *doc, submit_reply_fn *reply);
