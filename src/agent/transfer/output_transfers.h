/* output_transfers: outputs to URLs. */
#pragma once
#include "agent/model/attempt.h"

/* An output to a URL: a file of the sandbox, or, when `data` is no -1, size bytes at `at` of that. */
struct output_transfer {
        char *from, *url; /* taken */
        uint64_t at, size;
};
/* What has to be sent of the outputs that are out of the sandbox. */
struct outputs {
        struct output_transfer *files; /* to URLs */
        size_t count;
        char **paths; /* to the spool, as spool_upload takes them; NULL: none */
        int data;     /* the contents of all, one after the other; -1: they are in the sandbox */
};
void outputs_deinit(struct outputs *o);

/* Sends those to URLs one after the other, and then calls news->delivered. They are borrowed until then, or
 * until output_transfers_forget. */
void output_transfers_start(struct attempt *at, const struct outputs *outputs);
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
