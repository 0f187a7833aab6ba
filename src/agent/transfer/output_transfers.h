/* output_transfers: sends outputs to URLs. */
#pragma once
#include "agent/model/attempt.h"

/* An output for a URL: a file of the sandbox or, if outputs.data is not -1, `size` bytes at `at` of that
 * file. */
struct output_transfer {
        char *from, *url; /* owned */
        uint64_t at, size;
};
/* Outputs of an attempt that have to be sent away. */
struct outputs {
        struct output_transfer *files; /* outputs for URLs */
        size_t count;
        char **paths; /* outputs for the spool, as spool_upload takes them; NULL: none */
        int data; /* file with the contents of all, one after the other; -1: the contents are in the sandbox
                   */
};
void outputs_deinit(struct outputs *o);

/* Sends the outputs for URLs one after the other and then calls news->delivered. `outputs` is borrowed until
 * then, or until output_transfers_forget. */
void output_transfers_start(struct attempt *at, const struct outputs *outputs);
void output_transfers_forget(struct attempt *at);
void output_transfers_drop_sent(struct attempt *at); /* empties at->result.sent */
void output_transfers_doing(const struct attempt *at,
                            struct buf *out);    /* appends a phrase that names the output being sent */
void output_transfers_go_on(struct attempt *at); /* continues after a credential has arrived */
/* Returns whether the next output waits for a store that does not answer. */
bool output_transfers_wait_for_store(const struct attempt *at);
/* Continues the transfers that wait for the store, or that asked whether it answers. */
void output_transfers_store_known(struct agent *a, size_t store, bool answers);
void output_transfers_stores_changed(struct agent *a);
