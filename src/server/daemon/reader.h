/* reader: the thread for what may wait for the disk and changes nothing in the core: history, events, the
 * spool. */
#pragma once
#include "server/daemon/server.h"

struct past;
struct reader;
int reader_start(struct server *s, struct reader **ret, struct err *err); /* 0 or -errno */
void reader_post(struct reader *r, struct task *t);
struct past *reader_past(struct reader *r); /* for its tasks */
void reader_stop(struct reader *r);         /* waits; what it was told before is done first */
void reader_free(struct reader *r);         /* NULL is fine */
