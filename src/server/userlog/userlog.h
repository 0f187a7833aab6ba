/* userlog: writes the events of users' jobs to the files that `log = …` names.
 *
 * The server itself opens no path of a user. It formats an event (format.h), and when the event is durable
 * it sends the text to an agent that sees the submitter's files and runs this owner's jobs. The agent
 * appends the text and reports that. All logs of one owner in one filesystem domain are written by one
 * agent at a time, in order; together they are a channel.
 *
 * Delivery is at least once: unacknowledged text is kept, and sent again in the next session. The position
 * of each channel is saved in the store from time to time (blob "userlog/done"), and after a restart the
 * later records of the core become lines again. The same record always gives the same text, so the agent
 * recognises lines that are in the file already, and each line is there once.
 *
 * An event about a million jobs is one entry, and becomes lines in slices, as fast as they are
 * acknowledged. Pending entries are limited to USERLOG_BYTES_MAX; beyond it the oldest entries of the
 * channel that grew are dropped, and the log says so with an event 008. An event of a request without
 * UserLog costs one lookup in a table. Core thread only. */
#pragma once
#include "core/model/event.h"
#include "core/model/submission.h"
#include "server/agents/agents.h"

#define USERLOG_BYTES_MAX (64u << 20)

struct userlog *userlog_new(void);
void userlog_free(struct userlog *u); /* accepts NULL */

/* ---- recovery: first userlog_restore, when the snapshot is in the core (returns 0, or an error of the
 * store); then userlog_record before each record is replayed; then userlog_recovered with the number of
 * the next record. */
int userlog_restore(struct server *s, uint64_t snapshot_seq, struct err *err);
void userlog_record(struct server *s, uint64_t seq);
void userlog_recovered(struct server *s, uint64_t next_seq);

/* Sets the default format in a submission that has a log and names no format. The format is kept with the
 * request, so that it does not change within a log. */
void userlog_set_format(struct server *s, struct submission *sub);

/* Warns of a log that no agent can write because no agent is known to see its folder. Appends a sentence
 * to `*warning`, after "; " if it is not empty. */
void userlog_check(const struct submission *sub, struct buf *warning);

/* Takes an event that the core has made or replayed. Its number is the one given before, or the next. */
void userlog_event(struct server *s, const struct event *e);
uint64_t userlog_last_seq(const struct server *s); /* number of the newest event */
/* At the end of each turn, before its batch is closed: sends durable lines up to the limits. */
void userlog_flush(struct server *s);
/* Returns whether lines wait, be it for their records to be durable or for an agent. */
bool userlog_waits(const struct server *s);
/* An agent has written lines, or could not. */
void userlog_written(struct server *s, struct agent *a, const struct command_log_written *answer);
