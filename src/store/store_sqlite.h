/* store_sqlite: shared by the files of the SQLite back end. Private to store/. */
#pragma once
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "store/backend.h"

/* The writer's statements; store_sqlite.c has their text. */
enum statement {
        ST_BEGIN,
        ST_HOLD,
        ST_COMMIT,
        ST_ROLLBACK,
        ST_STATE,
        ST_TERM,
        ST_LOG,
        ST_HISTORY,
        ST_HISTORY_CUT,
        ST_BLOB_PUT,
        ST_BLOB_DELETE,
        ST_SNAPSHOT_NEW,
        ST_SNAPSHOT_PART,
        ST_SNAPSHOT_COMPLETE,
        ST_CUT,
        ST_TIDY_PARTS,
        ST_TIDY_SNAPSHOTS,
        ST_TIDY_LOG,
        ST_COUNT,
};

/* A checkpoint begins at this many pages in the write-ahead log. Tests lower it before they open a store. */
extern int store_sqlite_checkpoint_frames;

/* A connection for reading. Idle ones are kept for reuse, with their statement for blobs, because preparing
 * it takes longer than reading one. */
struct reader {
        sqlite3 *db;
        sqlite3_stmt *blob; /* reset; NULL: not prepared yet */
        struct reader *next;
};

struct sqlite {
        struct store_backend be;
        char *path;
        int lock_fd, mark_fd;
        uint64_t marked; /* the newest durable record */
        bool exclusive;  /* one connection for everything; see store_sqlite.c */
        sqlite3 *db;     /* the writer's connection */
        sqlite3_stmt *st[ST_COUNT];
        sqlite3_stmt *blob;      /* as of a reader; in exclusive mode */
        pthread_mutex_t db_lock; /* recursive; held for writing, and in exclusive mode for reading */
        bool holds_read;         /* ST_HOLD is at its row; see store_sqlite_write.c */
        bool checkpointing;      /* the writer waits for the checkpoint thread */
        int64_t snapshot_id;     /* of the snapshot that is being written */
        bool failed;             /* nothing more is written, not even at closing */

        pthread_mutex_t readers_lock;
        struct reader *readers; /* idle connections */

        /* Checkpoints; see store_sqlite_write.c. */
        bool has_checkpointer;
        pthread_t checkpointer;
        sqlite3 *checkpoint_db;
        pthread_mutex_t checkpoint_lock;
        pthread_cond_t checkpoint_work;
        bool checkpoint_wanted, checkpoint_stop;
        int checkpoint_result; /* of a failure that must stop the store */
        struct err checkpoint_err;
        atomic_int wal_frames;         /* frames in the file; advanced by the writer */
        atomic_int backfilled;         /* the part of them that is in the database */
        atomic_bool checkpoint_passed; /* the thread has finished one checkpoint */
};

/* Returns what a result code of SQLite means, with text: STORE_CORRUPT, STORE_FULL or -errno. rc must be
 * an error. */
int sqlite_fail(const struct sqlite *q, sqlite3 *db, int rc, struct err *err);
int sqlite_corrupt(const struct sqlite *q, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
int sqlite_connect(const struct sqlite *q, sqlite3 **ret, struct err *err);
int sqlite_migrate(struct sqlite *q, struct err *err); /* updates the schema of q->db to this version */
int sqlite_checkpointer_start(struct sqlite *q, struct err *err);
void sqlite_checkpointer_stop(struct sqlite *q);
/* Moves all pages; returns false if that failed or a reader prevented it. For closing. */
bool sqlite_checkpoint_whole(struct sqlite *q);
void sqlite_readers_close(struct sqlite *q);
uint32_t sqlite_history_crc(const struct past_job *h);

static inline void sqlite_bind(sqlite3_stmt *st, int at, struct str s) /* borrowed until reset */
{
        sqlite3_bind_blob64(st, at, s.p ? s.p : "", s.n, SQLITE_STATIC);
}
static inline struct str sqlite_column(sqlite3_stmt *st, int at) /* borrowed until the next step */
{
        const void *p = sqlite3_column_blob(st, at);

        return str_make(p, (size_t)sqlite3_column_bytes(st, at));
}

int sqlite_term_take(struct store_backend *be, uint64_t *ret_term, struct err *err);
int sqlite_commit(struct store_backend *be, struct store_batch *first, uint64_t *last_seq, struct err *err);
int sqlite_snapshot_slice(struct store_backend *be, struct store_snapshot *sn, struct err *err);
/* All records up to the snapshot's may have been deleted. */
#define SQLITE_LAST                                                                                          \
        "SELECT max((SELECT ifnull(max(seq), 0) FROM log), (SELECT cut FROM state),"                         \
        " (SELECT ifnull(max(seq), 0) FROM snapshot WHERE complete))"
int sqlite_follow_last(struct store_backend *be, uint64_t *ret_seq, struct err *err);
int sqlite_scan(struct store_backend *be, uint64_t from, store_scan_fn *fn, void *arg, struct err *err);
int sqlite_snapshot_get(struct store_backend *be, uint64_t *ret_seq, struct buf *ret_data, struct err *err);
int sqlite_blob_get(struct store_backend *be, struct str name, struct buf *ret_data, struct err *err);
void sqlite_blobs_begin(struct store_backend *be); /* not in exclusive mode */
void sqlite_blobs_end(struct store_backend *be);
int sqlite_blob_list(struct store_backend *be, struct str prefix, struct str from, store_name_fn *fn,
                     void *arg, struct err *err);
int sqlite_history(struct store_backend *be, const struct store_query *q, store_history_fn *fn, void *arg,
                   struct err *err);
