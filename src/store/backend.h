/* backend: the functions that a store's back end implements, and the batch as back ends see it. Private to
 * store/.
 *
 * A back end is one struct of functions. The functions of the first group are called by the store's own
 * thread only (and by store_open and store_close, when that thread is not running). Those of the second
 * group may be called by any thread, several at a time, also while the store's thread is in a function of
 * the first group. store.c handles the queue, the order and the callbacks; a back end only makes one group
 * of batches durable at a time.
 *
 * Return values are those of store.h. After a negative value, or STORE_CORRUPT, from a writing function
 * nothing more is written: store.c then calls only the reading functions and close. */
#pragma once
#include "base/pack.h"
#include "store/store.h"

struct store_batch {
        struct buf ops;  /* packed operations, read with store_batch_next */
        uint32_t events; /* number of records among them */
        /* The following members belong to store.c. */
        /* the store that returned the batch with STORE_FULL, until it is appended again or freed */
        struct store *refused_by;
        struct store_batch *next, *refused_next, *refused_prev;
        bool refused; /* the queue has it only to return it */
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
        uint64_t row; /* history cut: the last row */
};

/* Reads the next operation, which borrows from the batch. Begin with u = store_batch_ops(b). */
struct unpack store_batch_ops(const struct store_batch *b);
bool store_batch_next(struct unpack *u, struct store_op *ret);
void store_history_pack(struct buf *to, const struct past_job *h);
void store_history_unpack(struct unpack *u, struct past_job *ret);

/* Returns the checksum of a record. It includes the number, so that a record in the wrong place is
 * detected. */
uint32_t store_record_crc(uint64_t seq, struct str record);

/* A snapshot that is being written, in slices so that commits continue in between. */
struct store_snapshot {
        uint64_t term, seq, cut_to;
        struct str data; /* owned by the caller, who waits */
        size_t offset;   /* bytes written so far */
        int phase;       /* for the back end; starts at 0 */
        bool durable;    /* the snapshot is stored; only cleanup remains */
        bool done;
};

struct store_backend {
        const struct store_backend_ops *ops;
        bool lost; /* the result of store_lost */
};

struct store_backend_ops {
        /* ---- the store's thread
         * ------------------------------------------------------------------------------- */
        /* path: the part of the address after "name:". *ret_last_seq is the number of the last record. */
        int (*open)(const char *path, const struct store_place *place, struct store_backend **ret,
                    uint64_t *ret_last_seq, bool *ret_network, struct err *err);
        /* For store_follow: only reading calls and close come after it. NULL: cannot be followed. */
        int (*follow)(const char *path, const struct store_place *place, struct store_backend **ret,
                      struct err *err);
        int (*follow_last)(struct store_backend *be, uint64_t *ret_seq, struct err *err);
        void (*close)(struct store_backend *be);
        int (*term_take)(struct store_backend *be, uint64_t *ret_term, struct err *err);
        /* Makes the batches (linked by next) durable in one step. Sets the result of each to STORE_DURABLE
         * and its last_seq, or to STORE_STALE_TERM if nothing of it was written. Any return value but 0
         * means that nothing was written, and the results do not count. *last_seq is the last number in
         * the log, and is updated on success. */
        int (*commit)(struct store_backend *be, struct store_batch *first, uint64_t *last_seq,
                      struct err *err);
        /* Writes one slice; sets sn->done after the last. */
        int (*snapshot_slice)(struct store_backend *be, struct store_snapshot *sn, struct err *err);
        int (*reserve_release)(struct store_backend *be);
        int (*reserve_take)(struct store_backend *be);

        /* ---- any thread
         * --------------------------------------------------------------------------------------- */
        int (*scan)(struct store_backend *be, uint64_t from, store_scan_fn *fn, void *arg, struct err *err);
        int (*snapshot_get)(struct store_backend *be, uint64_t *ret_seq, struct buf *ret_data,
                            struct err *err);
        int (*blob_get)(struct store_backend *be, struct str name, struct buf *ret_data, struct err *err);
        void (*blobs_begin)(struct store_backend *be); /* of store_blobs_begin; NULL: of no use here */
        void (*blobs_end)(struct store_backend *be);
        /* from: at or behind the prefix */
        int (*blob_list)(struct store_backend *be, struct str prefix, struct str from, store_name_fn *fn,
                         void *arg, struct err *err);
        int (*history)(struct store_backend *be, const struct store_query *q, store_history_fn *fn, void *arg,
                       struct err *err);
};

extern const struct store_backend_ops store_memory, store_sqlite, store_sqlite_exclusive, store_postgres;
