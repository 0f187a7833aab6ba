/* output_transfers: outputs to URLs. */
#pragma once
#include "agent/model/attempt.h"

/* An output to a URL: a file of the sandbox, or, when `data` is no -1, size bytes at `at` of that. */
struct output_transfer {
        char *from, *url; /* taken */
        uint64_t at, size;
};
/* Sends them one after the other; then what goes to the spool, if there are `paths` (else NULL); then calls
 * news->delivered. All are taken; data as in spool_upload. */
void output_transfers_start(struct attempt *at, struct output_transfer *files, size_t count, char **paths,
                            int data);
void output_transfers_forget(struct attempt *at);
void output_transfers_doing(const struct attempt *at,
                            struct buf *out);    /* which output is on its way, in words */
void output_transfers_go_on(struct attempt *at); /* a credential that they waited for may be here */
/* Does the next one wait for a store that is silent? */
bool output_transfers_wait_for_store(const struct attempt *at);
/* Those that wait for the store, or have asked whether it is there, go on. Stores may have other numbers, or
 * none. */
void output_transfers_store_known(struct agent *a, size_t store, bool answers);
void output_transfers_stores_changed(struct agent *a);
