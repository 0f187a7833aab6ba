/* outbox: sends messages to the server. While there is a session most messages leave at once; messages about
 * many attempts are gathered over a turn and leave at its end. */
#pragma once
#include "agent/model/attempt.h"
#include "wire/session.h"

void outbox_open(struct agent *a);
void outbox_close(struct agent *a);
/* Sets the session for messages from now on, borrowed; NULL: there is none, and gathered messages are
 * dropped. */
void outbox_session(struct agent *a, struct session *session);
void outbox_send(struct agent *a, Drover__ToServer *m); /* dropped if there is no session */

/* ---- sent at once; texts and checksums (32 bytes) are borrowed for the call */
void outbox_checkpoint(const struct attempt *at); /* sends the present result as a checkpoint */
void outbox_credential_get(struct agent *a, uint64_t request, uint32_t part, const char *name);
void outbox_spool_read(struct agent *a, uint64_t request, const unsigned char *sha256, uint64_t offset,
                       uint32_t length);
void outbox_spool_write(const struct attempt *at, const unsigned char *sha256, uint64_t offset,
                        struct str data, bool last);
/* error: empty for success; again: after an error, a later attempt may succeed. */
void outbox_userlog_written(struct agent *a, uint64_t serial, const char *error, bool again, bool added);

/* ---- gathered until the end of the turn */
void outbox_accept(struct attempt *at);
/* `at` may be an attempt that was never set up: only its name is used. */
void outbox_refuse(struct agent *a, const char *queue, const struct attempt *at, bool hold,
                   const char *reason);
void outbox_flush(struct agent *a); /* sends the gathered messages, started attempts and results */

void outbox_inventory(struct agent *a);                             /* sends the inventory of attempts */
void outbox_pack_result(const struct attempt *at, struct buf *out); /* appends a packed JobResult */
