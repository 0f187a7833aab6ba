/* notices: users are told when their jobs end, fail or are held, by mail or a web hook.
 *
 * What is to be told of a job is added to a notice in the turn in which the job's event is made: the open
 * notice of this owner and this address gathers what happens until it is sent. It is kept as the blob
 * "notice/ID", written in the same commit as the event, so none is lost by kill -9. It is sent by the threads
 * of notify/ once it is durable, and the blob goes when it has left: at least once, and again with the same
 * id if the server dies between. What has been tried once never changes, so an id always says the same.
 *
 * A notice waits gather_ms, and until its owner has not had more than per_hour of late; jobs that end
 * meanwhile are in it too, the first NOTICE_ROWS_MAX of them in full, the others by number. What fails for
 * now is tried again with growing pauses, and dropped, with a line in the log, after give_up_ms. One notice
 * of an owner is under way at a time. Core thread only.
 */
#pragma once
#include "core/model/event.h"
#include "core/model/submission.h"
#include "server/loop/server.h"

#define NOTICE_ROWS_MAX 100
#define NOTICES_MAX     200 /* of one owner that wait: one for each address that he uses */

struct notices *notices_new(void);
/* After recovery: reads the notices that wait in the store, and starts the threads that send. 0 or an error
 * with err. */
int notices_open(struct server *s, struct err *err);
void notices_stop(struct notices *n); /* the threads; NULL is fine */
void notices_free(struct notices *n); /* NULL is fine */

/* Checks that the notices that a request asks for can be sent. 0; -EINVAL or -EACCES with err. Notices that
 * are allowed and will not be sent are named by a sentence in *warning. */
int notices_check(struct server *s, const struct submission *sub, struct buf *warning, struct err *err);

/* The core has made an event, or filed the end of a job. */
void notices_event(struct server *s, const struct event *e);
void notices_ended(struct server *s, const struct past_job *f);
void notices_flush(struct server *s); /* at the end of each turn, before its batch is closed */
void notices_tick(struct server *s);  /* now and then, in a turn */
