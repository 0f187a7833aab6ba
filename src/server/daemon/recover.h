/* recover: the state from the store, at the start. */
#pragma once
#include "server/loop/server.h"

struct recovered {
        uint64_t snapshot_seq, last_seq; /* 0: no snapshot */
        uint64_t records;                /* replayed */
        int64_t took_ms;
};
/* Opens the store, takes the term, and replays into s->core (new). 0; or an error with err, a sentence that
 * says which file and record, and what can be done. */
int recover(struct server *s, struct recovered *ret, struct err *err);
