/* backend: what a store must be able to do, and the batch as back ends see it. Private to store/.
 *
 * A back end is one struct of functions. Those of the first group are called by the store's own thread only
 * (and by store_open and store_close, when that thread is not running); those of the second by any thread,
 * several at a time, also while the first thread is inside one of the first group. store.c does the queue,
 * the order and the callbacks; a back end only makes one group of batches durable at a time.
 *
 * Return values are those of store.h. After a negative one, or STORE_CORRUPT, from a writing call nothing
 * more is written: store.c calls only the reading functions and close.
 */
#pragma once
#include "base/pack.h"
#include "store/store.h"

struct store_batch {
        struct buf ops;  /* packed operations, read with store_batch_next */
        uint32_t events; /* records among them */
        /* Owned by store.c from here on. */
        struct store *refused_by; /* came back STORE_FULL from it, and was neither appended again nor freed */
        struct store_batch *next, *refused_next, *refused_prev;
        bool refused; /* in the queue only to be handed back */
        uint64_t term, last_seq;
        int result;
        store_done_fn *done;
        void *arg;
};

enum store_op_kind {
        STORE_OP_EVENT = 1,
        STORE_OP_HISTORY,
        STORE_OP_BLOB_PUT,
        STORE_OP_BLOB_DELETE,
        STORE_OP_HISTORY_CUT
};

struct store_op {
        enum store_op_kind kind;
        struct str name, data; /* event: data; blob: both */
        struct past_job history;
        uint64_t row; /* history cut */
};

/* Reads the next operation; what it points to is borrowed from the batch. Begin with u = store_batch_ops(b).
 */
struct unpack store_batch_ops(const struct store_batch *b);
bool store_batch_next(struct unpack *u, struct store_op *ret);
void store_history_pack(struct buf *to, const struct past_job *h);
void store_history_unpack(struct unpack *u, struct past_job *ret);

/* Checksum of a record; the number is part of it, so that a record in another's place is found. */
uint32_t store_record_crc(uint64_t seq, struct str record);

/* A snapshot on its way in, written a slice at a time so that commits go on in between. */
struct store_snapshot {
        uint64_t term, seq, cut_to;
        struct str data; /* the caller's, who waits */
        size_t offset;   /* how much of it is written */
        int phase;       /* the back end's own; starts at 0 */
        bool durable;    /* the snapshot is in; what follows is only tidying */
        bool done;
};

struct store_backend {
        const struct store_backend_ops *ops;
        bool lost; /* see store_lost */
};

struct store_backend_ops {
        /* ---- the store's thread
         * ------------------------------------------------------------------------------- */
        /* path: what follows "name:" in the address. *ret_last_seq is the number of the last record. */
        int (*open)(const char *path, const struct store_place *place, struct store_backend **ret,
                    uint64_t *ret_last_seq, bool *ret_network, struct err *err);
        void (*close)(struct store_backend *be);
        int (*term_take)(struct store_backend *be, uint64_t *ret_term, struct err *err);
        /* Makes the batches (linked by next) durable in one step. Sets each one's result to STORE_DURABLE and
         * its last_seq, or to STORE_STALE_TERM and writes nothing of it. Anything but 0 means that nothing of
         * any was written, and the results do not count. *last_seq is the last number in the log, and moves
         * on success. */
        int (*commit)(struct store_backend *be, struct store_batch *first, uint64_t *last_seq,
                      struct err *err);
        /* One slice; sets sn->done after the last. */
        int (*snapshot_slice)(struct store_backend *be, struct store_snapshot *sn, struct err *err);
        int (*reserve_release)(struct store_backend *be);
        int (*reserve_take)(struct store_backend *be);

        /* ---- any thread
         * --------------------------------------------------------------------------------------- */
        int (*scan)(struct store_backend *be, uint64_t from, store_scan_fn *fn, void *arg, struct err *err);
        int (*snapshot_get)(struct store_backend *be, uint64_t *ret_seq, struct buf *ret_data,
                            struct err *err);
        int (*blob_get)(struct store_backend *be, struct str name, struct buf *ret_data, struct err *err);
        int (*blob_list)(struct store_backend *be, struct str prefix, store_name_fn *fn, void *arg,
                         struct err *err);
        int (*history)(struct store_backend *be, const struct store_query *q, store_history_fn *fn, void *arg,
                       struct err *err);
};

extern const struct store_backend_ops store_memory, store_sqlite, store_sqlite_exclusive, store_postgres;
