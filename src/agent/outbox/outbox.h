/* outbox: what the agent tells the server. Messages leave at once, while there is a session; what is told of
 * many attempts is gathered over a turn and leaves at its end.
 */
#pragma once
#include "agent/model/attempt.h"
#include "wire/session.h"

void outbox_open(struct agent *a);
void outbox_close(struct agent *a);
/* Messages go to this session from now on, which is borrowed; NULL: it is over, and what was gathered for it
 * is dropped. */
void outbox_session(struct agent *a, struct session *session);
void outbox_send(struct agent *a, Drover__ToServer *m); /* dropped when there is no session */

/* ---- at once; the texts and checksums (32 bytes) are borrowed for the call */
void outbox_checkpoint(const struct attempt *at); /* its result as it is now, as a checkpoint's */
void outbox_credential_get(struct agent *a, uint64_t request, uint32_t part, const char *name);
void outbox_spool_read(struct agent *a, uint64_t request, const unsigned char *sha256, uint64_t offset,
                       uint32_t length);
void outbox_spool_write(const struct attempt *at, const unsigned char *sha256, uint64_t offset,
                        struct str data, bool last);
/* error: empty for none; again: with one, a later try may help. */
void outbox_userlog_written(struct agent *a, uint64_t serial, const char *error, bool again, bool added);

/* ---- gathered */
void outbox_accept(struct attempt *at);
/* `at` may be one that was never made: its name is taken. */
void outbox_refuse(struct agent *a, const char *queue, const struct attempt *at, bool hold,
                   const char *reason);
void outbox_flush(struct agent *a); /* with what has begun, and what is done */

void outbox_inventory(struct agent *a);                             /* what we have */
void outbox_pack_result(const struct attempt *at, struct buf *out); /* a packed JobResult, appended */
