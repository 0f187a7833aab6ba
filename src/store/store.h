/* store: one ordered log with side tables, on any of several back ends.
 *
 * The log is a sequence of records (bytes, made by core/event), numbered from 1 without gaps. The state is
 * the newest snapshot plus the records after it. Beside the log there are history rows (one per finished
 * job) and blobs (bytes under a name). The content of a batch becomes durable as a whole or not at all: it
 * survives kill -9 and power loss from the moment its callback says STORE_DURABLE.
 *
 * Threads: store_append and store_batch_* may be called by one thread at a time (the one that owns the
 * core). The callback runs on the store's own thread: it should post to a mailbox and return. Waiting
 * batches are committed together (group commit), in order, and their callbacks run in order. The reading
 * calls (scan, snapshot, history, blobs) are synchronous, see everything that was committed, and may be
 * called from any thread.
 *
 * Order on a full disk: after one batch was returned with STORE_FULL, every other batch is returned too,
 * until the first is appended again or freed, so that no batch overtakes it. Append returned batches in
 * the order in which they were returned.
 *
 * Back ends: memory (for the simulator and tests), sqlite, postgresql. One conformance suite runs on each:
 * tests/conform. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/job/past_job.h"

enum store_error {
        STORE_DURABLE = 0,
        STORE_FULL = 1,   /* no space: nothing of this batch was written; it may be appended again later */
        STORE_STALE_TERM, /* another server holds a newer term: nothing was written; stop */
        STORE_CORRUPT,    /* the data is damaged; err says which file and what to do */
        STORE_LOCKED,     /* another server has this store open; err says who */
        STORE_TOO_NEW,    /* made by a newer version */
        STORE_NOT_FOUND,
        STORE_FOREIGN, /* this is the log of another server */
};

struct store;
struct store_batch;

/* Reports a problem of the database. text: one sentence. Called on the store's thread. */
typedef void store_trouble_fn(void *arg, const char *text);
/* Keeps each group of batches at another server too, before it is committed here. Both are called on the
 * store's thread. */
struct store_mirror {
        /* ops: what the group's batches hold, in order, as store_batch_read takes it. `add` is empty, and
         * what is put into it is committed with the group, before it. Returns 0 when all is durable there, or
         * need not be. After an error (negative, with err) nothing is committed, and the store takes nothing
         * more. */
        int (*before)(void *arg, const struct str *ops, size_t count, struct store_batch *add,
                      struct err *err);
        /* After each group for which `before` returned 0. Not committed: the disk is full, or has failed. */
        void (*after)(void *arg, bool committed);
        void *arg;
};
/* What the opener of a store that is not a file gives it: its files on this machine, and whom it tells. All
 * members may be NULL. */
struct store_place {
        /* path: <beside>.id names this server's log, <beside>.mark has the number of its newest durable
         * record */
        const char *beside;
        /* called when the connection to the database is lost, and when it is back */
        store_trouble_fn *trouble;
        void *trouble_arg;
        /* If greater than 0: while another server leads, opening waits (standing_by is called). It takes
         * over when the leader's session has ended, or when the leader has committed nothing for this
         * long. A leader commits several times in this period, an empty batch if there is nothing else. */
        int64_t standby_ms;
        void (*standing_by)(void *arg);
        void *standing_arg;
        const struct store_mirror *mirror; /* for any store; copied */
};

/* Opens a store by address: "memory:" or "sqlite:/path/file.db" (created when absent, mode 0600).
 * Migrations run here. Returns 0; STORE_CORRUPT, STORE_LOCKED or STORE_TOO_NEW; or -errno. On a network
 * filesystem sqlite uses exclusive locking, and *ret_network (may be NULL) is set so that the caller can
 * warn; "sqlite-exclusive:" always uses it. Beside the file are <file>.lock (with the holder's pid),
 * <file>.reserve, and <file>.mark (the newest durable record: a file that ends before it is
 * STORE_CORRUPT). "memory:<bytes>" is full at that size, for tests of a full disk. */
int store_open(const char *address, struct store **ret, bool *ret_network, struct err *err);
/* The same, and also for "postgresql://…", a URI of libpq. Such a database keeps everything in tables
 * drover_… of its current schema, created when absent. Also returns STORE_FOREIGN; and -ENOTCONN when the
 * database does not answer or refuses the connection. A second server is kept out by an advisory lock and
 * fenced by the term, which every writing transaction checks. A lost connection, a restart of the
 * database, and a failover to a complete standby are not errors: commits wait for up to a minute, and each
 * is in the log once. */
int store_open_at(const char *address, const struct store_place *place, struct store **ret, bool *ret_network,
                  struct err *err);
/* Opens a store that another server writes, for reading only: of the calls below, only those of *reading* and
 * store_close may be used, and store_follow_last instead of store_last_seq. Records come by store_scan; one
 * that does not begin with the number asked for, or does not reach the last, tells that records were cut.
 * Returns 0; STORE_CORRUPT, STORE_TOO_NEW, STORE_FOREIGN; -ENOENT: there is no store yet; -ENOTSUP: this back
 * end cannot be read meanwhile (memory, a network filesystem); or -errno; with err. */
int store_follow(const char *address, const struct store_place *place, struct store **ret, struct err *err);
/* The number of the newest durable record now. Returns 0; or as the reading calls. */
int store_follow_last(struct store *s, uint64_t *ret_seq, struct err *err);
/* Waits for the appended batches, then closes the store. Accepts NULL. */
void store_close(struct store *s);

/* Takes the next term: every append with an older term is refused from now on. Returns 0 or -errno. */
int store_term_take(struct store *s, uint64_t *ret_term, struct err *err);

/* ---- writing */
struct store_batch *store_batch_new(void);
void store_batch_free(struct store_batch *b);                              /* accepts NULL */
void store_batch_event(struct store_batch *b, struct str record);          /* copied */
void store_batch_history(struct store_batch *b, const struct past_job *h); /* copied */
/* Deletes the history rows up to this row id. The commit waits for the deletion, so delete some thousands
 * at a time. */
void store_batch_history_cut(struct store_batch *b, uint64_t row);
void store_batch_blob_put(struct store_batch *b, struct str name, struct str data);
void store_batch_blob_delete(struct store_batch *b, struct str name); /* does nothing if it is absent */
bool store_batch_empty(const struct store_batch *b);
void store_batch_pack(const struct store_batch *b, struct buf *to); /* appends its operations */
/* Makes a batch of what another server packed (store_mirror). Returns 0, or -EBADMSG when it is malformed. */
int store_batch_read(struct str ops, struct store_batch **ret);
/* Calls fn for each blob that the packed operations put. Malformed ones end it. */
void store_ops_blobs(struct str ops, void (*fn)(void *arg, struct str name), void *arg);
size_t store_batch_bytes(const struct store_batch *b);

/* Called once per appended batch, in order, on the store's thread. `last_seq` is the number of the batch's
 * last record (or of the last record before it, if it has none). On STORE_FULL the batch belongs to the
 * caller again and may be appended again; after any other result it has been freed and `batch` is NULL. A
 * negative result is the -errno of a write or flush that failed: the store accepts nothing more, and the
 * server must stop and recover. */
typedef void store_done_fn(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                           const struct err *err);
/* Takes the batch. */
void store_append(struct store *s, uint64_t term, struct store_batch *b, store_done_fn *done, void *arg);

/* Part of the disk is reserved for when it is full. This call releases it, so that what must still be
 * written fits; a later store_reserve_take allocates it again. Returns 0, STORE_FULL or -errno. */
int store_reserve_release(struct store *s);
int store_reserve_take(struct store *s);

/* ---- reading: each returns 0; STORE_CORRUPT when the data is damaged; or -errno; with err. */
uint64_t store_last_seq(struct store *s); /* number of the newest durable record */
/* Returns whether records after the last one may have been lost before the store was opened: the database
 * is an older copy, or was put here without its mark. */
bool store_lost(const struct store *s);
/* Copies a database, which may be in use, as it is at one moment, into a file that does not exist yet
 * (mode 0600, flushed). Writers are not blocked. Returns 0; STORE_CORRUPT, STORE_FULL; or -errno, with
 * err. */
int store_copy(const char *path, const char *to, struct err *err);
/* The same for the PostgreSQL database at this address, which becomes an SQLite file. May also return
 * -ENOTCONN. */
int store_carry_out(const char *address, const char *to, struct err *err);
/* The reverse: copies the SQLite file `from` into an empty PostgreSQL database, as a whole or not at all.
 * Its next opening counts as one that may have lost records (store_lost). Returns -EEXIST when the
 * database has a log already. */
int store_carry_in(const char *from, const char *address, const struct store_place *place, struct err *err);
/* Calls fn for each record with number >= from, in order, until fn returns nonzero (which is returned). A
 * missing record counts as damage. The record is valid until fn returns. */
typedef int store_scan_fn(void *arg, uint64_t seq, struct str record, struct err *err);
int store_scan(struct store *s, uint64_t from, store_scan_fn *fn, void *arg, struct err *err);

/* A snapshot is the state after record `seq`. The snapshot is durable when the call returns 0; until then
 * the previous one is kept. The call then deletes the records with numbers <= cut_to (which must be <=
 * seq; else -EINVAL). The caller waits; appends continue meanwhile. May also return STORE_FULL,
 * STORE_STALE_TERM or -errno. */
int store_snapshot_put(struct store *s, uint64_t term, uint64_t seq, struct str data, uint64_t cut_to,
                       struct err *err);
int store_snapshot_get(struct store *s, uint64_t *ret_seq, struct buf *ret_data,
                       struct err *err); /* may also return STORE_NOT_FOUND */

int store_blob_get(struct store *s, struct str name, struct buf *ret_data,
                   struct err *err); /* may also return STORE_NOT_FOUND */
/* Until store_blobs_end, blobs that the same thread asks for in the order in which they were put are read
 * faster. Meanwhile a transaction may stay open, so nothing is to be appended: for a start. */
void store_blobs_begin(struct store *s);
void store_blobs_end(struct store *s);
/* Calls fn for the names that begin with prefix, sorted, until fn returns nonzero (which is returned). */
typedef int store_name_fn(void *arg, struct str name);
int store_blob_list(struct store *s, struct str prefix, store_name_fn *fn, void *arg, struct err *err);
/* The same, beginning with the first name that is not before `from`. */
int store_blob_list_from(struct store *s, struct str prefix, struct str from, store_name_fn *fn, void *arg,
                         struct err *err);

struct store_query { /* a member that is 0 does not restrict the result */
        uint64_t request;
        bool has_member;
        uint32_t member;
        uint32_t member_end; /* with has_member: the range [member, member_end); 0: only this member */
        struct str owner;
        uint64_t before; /* only rows older than this row id, for paging; rows come newest first */
        bool oldest;     /* rows come oldest first */
        uint32_t limit;  /* 0: no limit */
};
/* Calls fn for each row until it returns nonzero, which is returned. h is valid until fn returns. The cost
 * is proportional to the number of rows returned, if the query names a request, an owner, or neither. */
typedef int store_history_fn(void *arg, uint64_t row, const struct past_job *h);
int store_history_query(struct store *s, const struct store_query *q, store_history_fn *fn, void *arg,
                        struct err *err);
