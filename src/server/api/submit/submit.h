/* submit: lets other parts of the API submit a request, as POST /v1/requests does. */
#pragma once
#include "server/calls/call.h"

/* I/O thread: writes the reply for a durable request into c->out, and ends with call_reply. */
typedef void submit_reply_fn(struct call *c, uint64_t id);
/* I/O thread or reader: continues as POST /v1/requests does with this document, which is taken, but
 * without body_check. The call must have no state, and gets one. An error ends the call. */
void submit_document(struct call *c, json_t *doc, submit_reply_fn *reply);
