/* recover: restores the state from the store at the start. */
#pragma once
#include "server/loop/server.h"

struct recovered {
        uint64_t snapshot_seq, last_seq; /* 0: no snapshot */
        uint64_t records;                /* number of replayed records */
        int64_t took_ms;
};
/* Opens the store, takes the term, and replays the log into s->core, which is new. Returns 0; or an error
 * with err, which names the file and the record and says what to do. */
int recover(struct server *s, struct recovered *ret, struct err *err);
/* A server that follows: replays the records that are new since then. Returns 0; -ENOTCONN: the database does
 * not answer, nothing is lost; or another error with err, after which s->core is of no use. */
int recover_more(struct server *s, struct err *err);
