/* userlog: the events of users' jobs as lines in the files that `log = …` names.
 *
 * The server opens no path of a user. It formats events (format.h) and sends the text, once the event
 * is durable, to an agent that sees the submitter's files and runs this owner's jobs; that agent appends it
 * and says so. All logs of one owner in one filesystem domain go through one agent at a time, in order: a
 * channel.
 *
 * At least once: what is not acknowledged is kept, and sent again to the next session. How far each channel
 * has come is written to the store now and then (blob "userlog/done"), and after a restart the records of the
 * core behind that are made lines again. The same record gives the same text, so the agent finds those that
 * are in the file already, and there is each of them once.
 *
 * An event over a million jobs is one entry here, and becomes lines in slices, as fast as they are
 * acknowledged. What waits is limited to USERLOG_BYTES_MAX; past it the oldest entries of the channel that
 * grew are dropped, and the log says so by an event 008. Requests without UserLog cost one look into a table
 * per event. Core thread only.
 */
#pragma once
#include "core/model/event.h"
#include "core/model/submission.h"
#include "server/agents/agents.h"

#define USERLOG_BYTES_MAX (64u << 20)

struct userlog *userlog_new(void);
void userlog_free(struct userlog *u); /* NULL is fine */

/* ---- recovery: restore once the snapshot is in the core (0, or an error of the store), then record before
 * each record is replayed, and recovered with the number that the next record will have. */
int userlog_restore(struct server *s, uint64_t snapshot_seq, struct err *err);
void userlog_record(struct server *s, uint64_t seq);
void userlog_recovered(struct server *s, uint64_t next_seq);

/* A submission that has a log and says nothing of its form gets the form that the server is told to use: kept
 * with the request, so that it does not change under a log that has been begun. */
void userlog_set_format(struct server *s, struct submission *sub);

/* Says in `warning` if a part of the submission names a log that no agent can write, as nothing says which
 * agents see the folder: `*warning` gets a sentence, after "; " if there is one already. */
void userlog_check(const struct submission *sub, struct buf *warning);

/* The core has made an event, or replayed one. It has the number that was said, or the next. */
void userlog_event(struct server *s, const struct event *e);
uint64_t userlog_last_seq(const struct server *s); /* of the newest event */
/* At the end of each turn, before its batch is closed: sends what is durable and fits. */
void userlog_flush(struct server *s);
/* An agent has written lines, or could not. */
void userlog_written(struct server *s, struct agent *a, const struct command_log_written *answer);
