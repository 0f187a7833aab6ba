/* notices: tells users by mail or web hook when their jobs end, fail or are held, and admins what became of
 * nodes.
 *
 * In the turn in which a job's event is made, the job is added to a notice: the open notice of this owner
 * and address collects jobs until it is sent. The notice is kept as the blob "notice/ID", written in the
 * same commit as the event, so that kill -9 loses none. The threads of notify/ send it when it is durable,
 * and the blob is deleted when it was sent. Delivery is at least once: if the server dies in between, the
 * notice is sent again with the same id. A notice that was tried once never changes, so an id always has
 * the same content.
 *
 * A notice waits for gather_ms, and until its owner is within per_hour. Jobs that end meanwhile are added,
 * the first NOTICE_ROWS_MAX of them in full and the others by number. A failure that may be temporary is
 * retried with growing pauses; after give_up_ms the notice is dropped, with a line in the server's log.
 * One notice of an owner is sent at a time. Core thread only. */
#pragma once
#include "core/model/event.h"
#include "core/model/submission.h"
#include "server/loop/server.h"

#define NOTICE_ROWS_MAX 100
#define NOTICES_MAX     200 /* pending notices of one owner, one for each address */

struct notices *notices_new(void);
/* After recovery: reads the pending notices from the store, and starts the threads that send. Returns 0,
 * or an error with err. */
int notices_open(struct server *s, struct err *err);
void notices_stop(struct notices *n); /* ends the threads; accepts NULL */
void notices_free(struct notices *n); /* accepts NULL */

/* Checks that the notices that a submission asks for can be sent. Returns 0; -EINVAL or -EACCES with err.
 * *warning gets a sentence about notices that are allowed but will not be sent. */
int notices_check(struct server *s, const struct submission *sub, struct buf *warning, struct err *err);

/* Takes an event that the core has made, and the end of a job. */
void notices_event(struct server *s, const struct event *e);
/* Takes an event by which a node changed without an admin's order. */
void notices_node(struct server *s, const struct event *e);
void notices_ended(struct server *s, const struct past_job *f);
void notices_flush(struct server *s); /* at the end of each turn, before its batch is closed */
void notices_tick(struct server *s);  /* from time to time, within a turn */
