/* store: one ordered log with side tables, whatever lies under it.
 *
 * The log is a sequence of records (bytes, made by core/event), numbered from 1 without gaps. State is the
 * newest snapshot plus the records after it. Beside the log: history rows (one per finished job), and blobs
 * (bytes under a name). What one batch holds becomes durable together or not at all: it survives kill -9 and
 * power loss from the moment its callback says STORE_DURABLE.
 *
 * Threads: store_append and store_batch_* may be called by one thread at a time (the one that owns the core).
 * The callback runs on the store's own thread: it should post to a mailbox and return. Batches that wait are
 * committed together (group commit), in order, and their callbacks run in order. The reading calls (scan,
 * snapshot, history, blobs) are synchronous, see everything that was committed, and may be called from any
 * thread.
 *
 * Order on a full disk: after a batch came back STORE_FULL, every other one comes back STORE_FULL as well
 * until it was appended again or freed, so nothing overtakes it. Append those that came back in the order
 * they came.
 *
 * Backends: memory (for the simulator and tests), sqlite, postgresql. One conformance suite runs on each:
 * tests/conform.
 */
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

/* What a store that is not a file has on this machine. All may be NULL. */
typedef void store_trouble_fn(void *arg, const char *text); /* one sentence; on the store's thread */
struct store_place {
        const char *beside; /* path: <beside>.id says which log is this server's, <beside>.mark its newest
                               durable record */
        store_trouble_fn *trouble; /* told when the database was lost, and is there again */
        void *trouble_arg;
        /* More than 0: while another server leads, opening waits (standing_by is told) and takes its place
         * when its session has ended, or when it has committed nothing for so long. Who leads commits
         * something, an empty batch if need be, several times as often. */
        int64_t standby_ms;
        void (*standing_by)(void *arg);
};

/* Opens by address: "memory:" or "sqlite:/path/file.db" (created when absent, mode 0600). Migrations run
 * here. 0; or STORE_CORRUPT, STORE_LOCKED, STORE_TOO_NEW; or -errno. On a network filesystem sqlite uses
 * exclusive locking, and *ret_network (may be NULL) is set, so that the caller can warn; "sqlite-exclusive:"
 * uses it anywhere. Beside the file are <file>.lock (with the holder's pid), <file>.reserve, and <file>.mark
 * (the newest durable record: a file that ends before it is STORE_CORRUPT). "memory:<bytes>" is full at that
 * size, so that a full disk can be played. */
int store_open(const char *address, struct store **ret, bool *ret_network, struct err *err);
/* The same; or by "postgresql://…", a URI of libpq, whose database keeps all in tables drover_… of its
 * current schema, made when they are absent. Or STORE_FOREIGN; -ENOTCONN when nobody answers or lets us in. A
 * second server is kept out by an advisory lock and fenced by the term, which every transaction that writes
 * checks. A lost connection, a restart of the database and a failover to a standby that has all are no
 * errors: commits wait for a minute, and each is in the log once. */
int store_open_at(const char *address, const struct store_place *place, struct store **ret, bool *ret_network,
                  struct err *err);
/* Waits for what was appended, then closes. NULL is fine. */
void store_close(struct store *s);

/* Takes the next term: every append with an older term is refused from now on. 0 or -errno. */
int store_term_take(struct store *s, uint64_t *ret_term, struct err *err);

/* ---- writing */
struct store_batch *store_batch_new(void);
void store_batch_free(struct store_batch *b);                              /* NULL is fine */
void store_batch_event(struct store_batch *b, struct str record);          /* copied */
void store_batch_history(struct store_batch *b, const struct past_job *h); /* copied */
/* Deletes the history rows up to this row id. Some thousands at a time: the commit waits for it. */
void store_batch_history_cut(struct store_batch *b, uint64_t row);
void store_batch_blob_put(struct store_batch *b, struct str name, struct str data);
void store_batch_blob_delete(struct store_batch *b, struct str name); /* absent is fine */
bool store_batch_empty(const struct store_batch *b);
size_t store_batch_bytes(const struct store_batch *b);

/* Called once per appended batch, in order, on the store's thread. `last_seq` is the number of the batch's
 * last record (or of the last before it, when it has none). On STORE_FULL the batch is the caller's again and
 * may be appended again; after any other result it has been freed and `batch` is NULL. Negative: -errno of a
 * write or flush that failed: the store takes nothing more, the server must stop and recover. */
typedef void store_done_fn(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                           const struct err *err);
/* Takes the batch. */
void store_append(struct store *s, uint64_t term, struct store_batch *b, store_done_fn *done, void *arg);

/* A part of the disk is kept for the day when it is full. Gives it back, so that what must still be written
 * fits; a later store_reserve_take tries to have it again. 0, STORE_FULL or -errno. */
int store_reserve_release(struct store *s);
int store_reserve_take(struct store *s);

/* ---- reading: each 0; STORE_CORRUPT when what is read is damaged; -errno; with err. */
uint64_t store_last_seq(struct store *s); /* of the newest record that is durable */
/* As it was opened: the database is an older copy, or was put here without its mark, so newer records than
 * its last may have been acknowledged once. */
bool store_lost(const struct store *s);
/* Copies a database that may be in use, as it is at one moment, into a file that is not there yet (mode 0600,
 * flushed). Writers go on meanwhile. 0; STORE_CORRUPT, STORE_FULL; -errno, with err. */
int store_copy(const char *path, const char *to, struct err *err);
/* The same of the PostgreSQL database at this address. Also -ENOTCONN. */
int store_carry_out(const char *address, const char *to, struct err *err);
/* And back: the copy `from` goes into an empty PostgreSQL database, whole or not at all, and its next opening
 * is one that may have lost records (store_lost). Or -EEXIST when there is a log already. */
int store_carry_in(const char *from, const char *address, const struct store_place *place, struct err *err);
/* Calls fn for each record with number >= from, in order, until it returns nonzero (which is returned). A
 * record that is missing is damage too. The bytes live until fn returns. */
typedef int store_scan_fn(void *arg, uint64_t seq, struct str record, struct err *err);
int store_scan(struct store *s, uint64_t from, store_scan_fn *fn, void *arg, struct err *err);

/* A snapshot is the state after record `seq`. Putting one is durable when it returns 0, keeps the one before
 * it until then, and cuts the records with numbers <= cut_to (which must be <= seq; else -EINVAL). The caller
 * waits; appends go on meanwhile. Or STORE_FULL, STORE_STALE_TERM, -errno. */
int store_snapshot_put(struct store *s, uint64_t term, uint64_t seq, struct str data, uint64_t cut_to,
                       struct err *err);
int store_snapshot_get(struct store *s, uint64_t *ret_seq, struct buf *ret_data,
                       struct err *err); /* or STORE_NOT_FOUND */

int store_blob_get(struct store *s, struct str name, struct buf *ret_data,
                   struct err *err); /* or STORE_NOT_FOUND */
/* Names that begin with prefix, sorted; until fn returns nonzero (which is returned). */
typedef int store_name_fn(void *arg, struct str name);
int store_blob_list(struct store *s, struct str prefix, store_name_fn *fn, void *arg, struct err *err);

struct store_query { /* zero fields do not restrict */
        uint64_t request;
        bool has_member;
        uint32_t member;
        uint32_t member_end; /* with has_member: [member, member_end); 0: this one only */
        struct str owner;
        uint64_t before; /* rows older than this row id: for paging; rows come newest first */
        bool oldest;     /* rows come oldest first */
        uint32_t limit;  /* 0: no limit */
};
/* h lives until fn returns. Stops when it returns nonzero, which is returned. The cost is that of the rows
 * told, if the query names a request, an owner, or neither. */
typedef int store_history_fn(void *arg, uint64_t row, const struct past_job *h);
int store_history_query(struct store *s, const struct store_query *q, store_history_fn *fn, void *arg,
                        struct err *err);
