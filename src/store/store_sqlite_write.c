/* Writing to SQLite: groups, terms, snapshots in slices, checkpoints.
 *
 * Checkpoints. A commit moves no pages (wal_autocheckpoint is 0). When the write-ahead log has
 * store_sqlite_checkpoint_frames pages, the checkpoint thread moves them to the database while commits
 * continue, and then the pages that were added meanwhile, until few are left. The writer moves those
 * between two commits, and SQLite then starts the log over; under constant load the thread alone would
 * never finish. If the log still becomes many times as long, the writer moves all pages, however long that
 * takes, because disk space is limited. A long-running reader delays starting over, but no commit.
 *
 * Locks. SQLite takes and releases its read lock with four system calls a transaction. So a statement is left
 * at its row from one commit to the next (ST_HOLD), which keeps that lock. It is let go before a checkpoint,
 * which moves no page that was added after a read lock was taken, and stays so until the log can start over.
 *
 * Failures. Without space the transaction is rolled back and the group returned. Any other error, also of
 * a checkpoint, stops the store: after a failed flush the kernel may have dropped pages that it could not
 * write, so only what is on the disk can be trusted. */
#include "store/store_files.h"
#include "store/store_sqlite.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>

#define NEAR_FRAMES             512
#define TOO_LONG                16 /* times store_sqlite_checkpoint_frames */
#define PART_BYTES              (256 << 10)
#define PARTS_PER_SLICE         4
#define PART_ID(snapshot, part) (((snapshot) << 20) + (part))

int store_sqlite_checkpoint_frames = 2000; /* 8 MB of pages */

/* Runs a statement that returns no rows, or the first number of whose first row is *ret. */
static int statement_step(struct sqlite *q, enum statement which, int64_t *ret, struct err *err)
{
        sqlite3_stmt *st = q->st[which];
        int rc = sqlite3_step(st);
        int r = 0;

        if (rc == SQLITE_ROW && ret) {
                *ret = sqlite3_column_int64(st, 0);
                rc = sqlite3_step(st);
        } else if (rc == SQLITE_DONE && ret) {
                r = sqlite_corrupt(q, err, "its table of state is empty");
        }
        if (rc != SQLITE_DONE)
                r = sqlite_fail(q, q->db, rc, err);
        sqlite3_reset(st);
        return r;
}

static void read_hold(struct sqlite *q)
{
        if (!q->holds_read && !q->exclusive && !q->checkpointing)
                q->holds_read = sqlite3_step(q->st[ST_HOLD]) == SQLITE_ROW;
}

static void read_release(struct sqlite *q)
{
        sqlite3_reset(q->st[ST_HOLD]);
        q->holds_read = false;
}

static void sqlite_rollback(struct sqlite *q)
{
        read_release(q);
        if (!sqlite3_get_autocommit(q->db))
                statement_step(q, ST_ROLLBACK, NULL, NULL);
}

/* ---- checkpoints */

static int checkpoint(struct sqlite *q, sqlite3 *db, struct err *err)
{
        int frames = 0, done = 0;
        int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &done);
        int r;

        if (rc == SQLITE_OK && frames >= 0) {
                atomic_store(&q->backfilled, done);
                return 0;
        }
        if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY)
                return 0;
        r = sqlite_fail(q, db, rc, err);
        return r == STORE_FULL ? 0 : r; /* the log still has everything */
}

bool sqlite_checkpoint_whole(struct sqlite *q)
{
        int frames = -1, done = 0;
        int rc = sqlite3_wal_checkpoint_v2(q->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &done);

        return rc == SQLITE_OK && frames >= 0 && frames == done;
}

static void *checkpoint_main(void *arg)
{
        struct sqlite *q = arg;

        pthread_setname_np(pthread_self(), "checkpoint");
        pthread_mutex_lock(&q->checkpoint_lock);
        for (;;) {
                struct err err = {0};
                int r;

                while (!q->checkpoint_wanted && !q->checkpoint_stop)
                        pthread_cond_wait(&q->checkpoint_work, &q->checkpoint_lock);
                if (q->checkpoint_stop)
                        break;
                pthread_mutex_unlock(&q->checkpoint_lock);
                r = checkpoint(q, q->checkpoint_db, &err);
                pthread_mutex_lock(&q->checkpoint_lock);
                q->checkpoint_wanted = false;
                if (r && !q->checkpoint_result) {
                        q->checkpoint_result = r;
                        q->checkpoint_err = err;
                }
                atomic_store(&q->checkpoint_passed, r == 0);
        }
        pthread_mutex_unlock(&q->checkpoint_lock);
        return NULL;
}

static int on_commit(void *arg, sqlite3 *db, const char *name, int frames)
{
        struct sqlite *q = arg;

        (void)db;
        (void)name;
        if (frames < atomic_load(&q->wal_frames))
                atomic_store(&q->backfilled, 0); /* the log starts over */
        atomic_store(&q->wal_frames, frames);
        return SQLITE_OK;
}

int sqlite_checkpointer_start(struct sqlite *q, struct err *err)
{
        sigset_t all, before;
        int r;

        sqlite3_wal_hook(q->db, on_commit, q);
        if (q->exclusive)
                return 0;
        r = sqlite_connect(q, &q->checkpoint_db, err);
        if (r)
                return r;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&q->checkpointer, NULL, checkpoint_main, q);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        assert(r == 0);
        q->has_checkpointer = true;
        return 0;
}

void sqlite_checkpointer_stop(struct sqlite *q)
{
        if (q->has_checkpointer) {
                pthread_mutex_lock(&q->checkpoint_lock);
                q->checkpoint_stop = true;
                pthread_cond_signal(&q->checkpoint_work);
                pthread_mutex_unlock(&q->checkpoint_lock);
                pthread_join(q->checkpointer, NULL);
        }
        if (q->checkpoint_db && q->failed)
                sqlite3_db_config(q->checkpoint_db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        sqlite3_close(q->checkpoint_db);
        q->checkpoint_db = NULL;
}

/* Runs between commits. The next commit reports a failure, because this one is durable. */
static void after_commit(struct sqlite *q)
{
        int frames = atomic_load(&q->wal_frames);
        int waiting = frames - atomic_load(&q->backfilled);
        bool passed = atomic_exchange(&q->checkpoint_passed, false);
        bool here = q->exclusive ? waiting >= store_sqlite_checkpoint_frames
                                 : passed && (waiting <= NEAR_FRAMES ||
                                              frames >= store_sqlite_checkpoint_frames * TOO_LONG);
        struct err err = {0};
        int r;

        if (passed)
                q->checkpointing = false;
        if (here) {
                read_release(q);
                r = checkpoint(q, q->db, &err);
                pthread_mutex_lock(&q->checkpoint_lock);
                if (r && !q->checkpoint_result) {
                        q->checkpoint_result = r;
                        q->checkpoint_err = err;
                }
                pthread_mutex_unlock(&q->checkpoint_lock);
        } else if (!q->exclusive && (passed || waiting >= store_sqlite_checkpoint_frames)) {
                read_release(q);
                q->checkpointing = true;
                pthread_mutex_lock(&q->checkpoint_lock);
                q->checkpoint_wanted = true;
                pthread_cond_signal(&q->checkpoint_work);
                pthread_mutex_unlock(&q->checkpoint_lock);
        }
}

/* ---- transactions */

static int begin_transaction(struct sqlite *q, uint64_t *ret_term, struct err *err)
{
        int64_t term = 0;
        int r;

        pthread_mutex_lock(&q->checkpoint_lock);
        r = q->checkpoint_result;
        if (r)
                err_set(err, r, "%s", q->checkpoint_err.text);
        pthread_mutex_unlock(&q->checkpoint_lock);
        if (r == 0)
                r = statement_step(q, ST_BEGIN, NULL, err);
        if (r == 0)
                r = statement_step(q, ST_STATE, &term, err);
        *ret_term = (uint64_t)term;
        return r;
}

/* Ends the transaction that begin_transaction() began: commits if r is 0, otherwise rolls back. */
static int end_transaction(struct sqlite *q, int r, struct err *err)
{
        if (r == 0) {
                read_hold(q);
                r = statement_step(q, ST_COMMIT, NULL, err);
        }
        if (r == 0) {
                after_commit(q);
                return 0;
        }
        sqlite_rollback(q);
        if (r == STORE_FULL) /* a log that was moved completely starts over, which may free enough space */
                checkpoint(q, q->db, NULL);
        if (r < 0 || r == STORE_CORRUPT)
                q->failed = true;
        return r;
}

int sqlite_term_take(struct store_backend *be, uint64_t *ret_term, struct err *err)
{
        struct sqlite *q = (struct sqlite *)be;
        int64_t term = 0;
        uint64_t old;
        int r;

        pthread_mutex_lock(&q->db_lock);
        r = begin_transaction(q, &old, err);
        if (r == 0)
                r = statement_step(q, ST_TERM, &term, err);
        r = end_transaction(q, r, err);
        pthread_mutex_unlock(&q->db_lock);
        if (r == 0)
                *ret_term = (uint64_t)term;
        return r == STORE_FULL ? err_set(err, -ENOSPC, "there is no space left for %s", q->path) : r;
}

uint32_t sqlite_history_crc(const struct past_job *h)
{
        BUF_CLEANUP struct buf b = {0};

        store_history_pack(&b, h);
        return pack_crc32c(0, b.p, b.n);
}

static int write_history(struct sqlite *q, const struct past_job *h, struct err *err)
{
        sqlite3_stmt *st = q->st[ST_HISTORY];

        sqlite3_bind_int64(st, 1, (int64_t)h->request);
        sqlite3_bind_int64(st, 2, h->member);
        sqlite3_bind_int64(st, 3, h->state);
        sqlite3_bind_int64(st, 4, h->submitted_ms);
        sqlite3_bind_int64(st, 5, h->ended_ms);
        sqlite3_bind_int64(st, 6, h->exit_code);
        sqlite_bind(st, 7, h->owner);
        sqlite3_bind_int64(st, 8, sqlite_history_crc(h));
        sqlite_bind(st, 9, h->data);
        return statement_step(q, ST_HISTORY, NULL, err);
}

static int write_batch(struct sqlite *q, const struct store_batch *b, uint64_t *seq, struct err *err)
{
        struct unpack u = store_batch_ops(b);
        struct store_op op;
        int r = 0;

        while (r == 0 && store_batch_next(&u, &op)) {
                switch (op.kind) {
                case STORE_OP_EVENT:
                        ++*seq;
                        sqlite3_bind_int64(q->st[ST_LOG], 1, (int64_t)*seq);
                        sqlite3_bind_int64(q->st[ST_LOG], 2, store_record_crc(*seq, op.data));
                        sqlite_bind(q->st[ST_LOG], 3, op.data);
                        r = statement_step(q, ST_LOG, NULL, err);
                        break;
                case STORE_OP_HISTORY: r = write_history(q, &op.history, err); break;
                case STORE_OP_BLOB_PUT:
                        sqlite_bind(q->st[ST_BLOB_PUT], 1, op.name);
                        sqlite3_bind_int64(q->st[ST_BLOB_PUT], 2, store_record_crc(op.name.n, op.data));
                        sqlite_bind(q->st[ST_BLOB_PUT], 3, op.data);
                        r = statement_step(q, ST_BLOB_PUT, NULL, err);
                        break;
                case STORE_OP_BLOB_DELETE:
                        sqlite_bind(q->st[ST_BLOB_DELETE], 1, op.name);
                        r = statement_step(q, ST_BLOB_DELETE, NULL, err);
                        break;
                case STORE_OP_HISTORY_CUT:
                        sqlite3_bind_int64(q->st[ST_HISTORY_CUT], 1, (int64_t)op.row);
                        r = statement_step(q, ST_HISTORY_CUT, NULL, err);
                        break;
                }
        }
        return r;
}

int sqlite_commit(struct store_backend *be, struct store_batch *first, uint64_t *last_seq, struct err *err)
{
        struct sqlite *q = (struct sqlite *)be;
        uint64_t term, seq = *last_seq;
        int r;

        pthread_mutex_lock(&q->db_lock);
        r = begin_transaction(q, &term, err);
        for (struct store_batch *b = first; r == 0 && b; b = b->next) {
                b->result = b->term == term ? STORE_DURABLE : STORE_STALE_TERM;
                if (b->result == STORE_DURABLE)
                        r = write_batch(q, b, &seq, err);
                b->last_seq = seq;
        }
        r = end_transaction(q, r, err);
        if (r == 0) {
                store_mark_write(q->mark_fd, STORE_MARK_OPEN, seq);
                q->marked = seq;
                q->be.lost = false;
        }
        pthread_mutex_unlock(&q->db_lock);
        if (r == 0)
                *last_seq = seq;
        return r;
}

/* ---- snapshots */

enum snapshot_phase { CLEAN_BEFORE, WRITE_PARTS, TIDY_AFTER };

/* Deletes some unneeded rows. *ret_more: there may be more. */
static int tidy(struct sqlite *q, bool *ret_more, struct err *err)
{
        int r = statement_step(q, ST_TIDY_PARTS, NULL, err);

        *ret_more = r == 0 && sqlite3_changes(q->db) > 0;
        if (r || *ret_more)
                return r;
        r = statement_step(q, ST_TIDY_LOG, NULL, err);
        *ret_more = r == 0 && sqlite3_changes(q->db) > 0;
        return r || *ret_more ? r : statement_step(q, ST_TIDY_SNAPSHOTS, NULL, err);
}

static int write_parts(struct sqlite *q, struct store_snapshot *sn, size_t *offset, struct err *err)
{
        int r = 0;

        for (int i = 0; i < PARTS_PER_SLICE && r == 0 && *offset < sn->data.n; i++) {
                struct str part = str_head(str_skip(sn->data, *offset), PART_BYTES);
                int64_t id = PART_ID(q->snapshot_id, (int64_t)(*offset / PART_BYTES));

                sqlite3_bind_int64(q->st[ST_SNAPSHOT_PART], 1, id);
                sqlite3_bind_int64(q->st[ST_SNAPSHOT_PART], 2, store_record_crc((uint64_t)id, part));
                sqlite_bind(q->st[ST_SNAPSHOT_PART], 3, part);
                r = statement_step(q, ST_SNAPSHOT_PART, NULL, err);
                *offset += part.n;
        }
        return r;
}

static int complete(struct sqlite *q, const struct store_snapshot *sn, struct err *err)
{
        int r;

        sqlite3_bind_int64(q->st[ST_SNAPSHOT_COMPLETE], 1, q->snapshot_id);
        r = statement_step(q, ST_SNAPSHOT_COMPLETE, NULL, err);
        sqlite3_bind_int64(q->st[ST_CUT], 1, (int64_t)sn->cut_to);
        return r ? r : statement_step(q, ST_CUT, NULL, err);
}

static int sqlite_write_snapshot_slice(struct sqlite *q, struct store_snapshot *sn, struct err *err)
{
        struct store_snapshot after = *sn;
        uint64_t term;
        bool more = false;
        int r = begin_transaction(q, &term, err);

        if (r == 0 && term != sn->term)
                r = err_set(err, STORE_STALE_TERM, "another server holds a newer term");
        if (r == 0 && sn->phase != WRITE_PARTS)
                r = tidy(q, &more, err);
        switch ((enum snapshot_phase)sn->phase) {
        case CLEAN_BEFORE:
                if (r || more)
                        break;
                sqlite3_bind_int64(q->st[ST_SNAPSHOT_NEW], 1, (int64_t)sn->seq);
                sqlite3_bind_int64(q->st[ST_SNAPSHOT_NEW], 2, (int64_t)sn->data.n);
                r = statement_step(q, ST_SNAPSHOT_NEW, &q->snapshot_id, err);
                after.phase = WRITE_PARTS;
                break;
        case WRITE_PARTS:
                if (r == 0)
                        r = write_parts(q, sn, &after.offset, err);
                if (r || after.offset < sn->data.n)
                        break;
                r = complete(q, sn, err);
                after.durable = true;
                after.phase = TIDY_AFTER;
                break;
        case TIDY_AFTER: after.done = !more; break;
        }
        r = end_transaction(q, r, err);
        if (r == 0)
                *sn = after;
        return r;
}

int sqlite_snapshot_slice(struct store_backend *be, struct store_snapshot *sn, struct err *err)
{
        struct sqlite *q = (struct sqlite *)be;
        int r;

        pthread_mutex_lock(&q->db_lock);
        r = sqlite_write_snapshot_slice(q, sn, err);
        pthread_mutex_unlock(&q->db_lock);
        return r;
}
