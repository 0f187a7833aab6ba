/* Writing to PostgreSQL: groups, terms, snapshots in slices.
 *
 * Each transaction is one pipeline: all statements are sent before the first answer is read, so that a
 * group of any size costs one round trip and one flush. The content of a group is collected into arrays,
 * one statement for each table.
 *
 * The first statement updates the state row from the number of the last transaction to the next one, if
 * the term is still ours; otherwise it divides by zero, and the whole transaction fails. Therefore
 *
 *  - a server that was away while another took a newer term writes nothing;
 *  - a transaction is applied at most once, however often it is sent. After a lost connection the number
 *  in the row says whether the last transaction was committed; and if a server process that seemed dead
 *  commits it later, the same transaction sent again fails at this statement.
 *
 * A lost connection is not a failure: the writer connects again, for up to store_postgres_patience_ms,
 * while the following groups collect. If the database is full or read-only the transaction is rolled back,
 * and the group is returned. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/map.h"
#include "base/system/clock.h"
#include "store/store_files.h"
#include "store/store_postgres.h"

#define PART_BYTES              (256 << 10)
#define PARTS_PER_SLICE         4
#define PART_ID(snapshot, part) (((snapshot) << 20) + (part))
#define AGAIN_FIRST_MS          20
#define AGAIN_LAST_MS           1000
#define STATEMENTS_MAX          16 /* in a transaction */
#define TIDY_AT                 2  /* index of a slice's first own statement, after BEGIN and the fence */

enum statement {
        ST_BEGIN,
        ST_COMMIT,
        ST_FENCE,
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

static const char *const statement_sql[ST_COUNT] = {
        [ST_BEGIN] = "BEGIN",
        [ST_COMMIT] = "COMMIT",
        [ST_FENCE] = "WITH moved AS (UPDATE drover_state SET number = $2::bigint WHERE term = $1::bigint AND "
                     "number = $2::bigint - 1"
                     " RETURNING 1) SELECT 1 / count(*) FROM moved",
        [ST_TERM] = "UPDATE drover_state SET term = term + 1, number = number + 1 RETURNING term, number",
        [ST_LOG] = "INSERT INTO drover_log (seq, crc, record) SELECT $1::bigint + u.n, u.crc, u.record"
                   " FROM unnest($2::bigint[], $3::bytea[]) WITH ORDINALITY AS u (crc, record, n)",
        [ST_HISTORY] =
                "INSERT INTO drover_history (id, request, member, state, submitted, ended, exit_code, owner,"
                " crc, data) SELECT $1::bigint + u.n, u.request, u.member, u.state, u.submitted, u.ended, "
                "u.exit_code,"
                " u.owner, u.crc, u.data"
                " FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],"
                " $7::bigint[], $8::bytea[], $9::bigint[], $10::bytea[]) WITH ORDINALITY"
                " AS u (request, member, state, submitted, ended, exit_code, owner, crc, data, n)",
        [ST_HISTORY_CUT] = "DELETE FROM drover_history WHERE id <= $1::bigint",
        [ST_BLOB_PUT] = "INSERT INTO drover_blob (name, crc, data)"
                        " SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[])"
                        " ON CONFLICT (name) DO UPDATE SET crc = excluded.crc, data = excluded.data",
        [ST_BLOB_DELETE] = "DELETE FROM drover_blob WHERE name = ANY ($1::bytea[])",
        [ST_SNAPSHOT_NEW] = "INSERT INTO drover_snapshot (id, seq, size) VALUES ($1::bigint, $2::bigint, $3)",
        [ST_SNAPSHOT_PART] =
                "INSERT INTO drover_snapshot_part (id, crc, data) VALUES ($1::bigint, $2::bigint, $3)",
        [ST_SNAPSHOT_COMPLETE] = "UPDATE drover_snapshot SET complete = true WHERE id = $1::bigint",
        [ST_CUT] = "UPDATE drover_state SET cut = greatest(cut, $1::bigint)",
        /* Deletes all snapshots but the newest complete one, all parts of others, and all records that
         * were cut. */
        [ST_TIDY_PARTS] =
                "DELETE FROM drover_snapshot_part WHERE id IN (SELECT id FROM drover_snapshot_part"
                " WHERE id >> 20 IS DISTINCT FROM (SELECT max(id) FROM drover_snapshot WHERE complete)"
                " LIMIT 32)",
        [ST_TIDY_SNAPSHOTS] = "DELETE FROM drover_snapshot WHERE id IS DISTINCT FROM"
                              " (SELECT max(id) FROM drover_snapshot WHERE complete)",
        [ST_TIDY_LOG] = "DELETE FROM drover_log WHERE seq IN (SELECT seq FROM drover_log"
                        " WHERE seq <= (SELECT cut FROM drover_state) ORDER BY seq LIMIT 10000)",
};

static const char *statement_name(enum statement which, char room[8])
{
        snprintf(room, 8, "w%d", (int)which);
        return room;
}

int pg_prepare_writer(const struct postgres *pg, PGconn *conn, struct err *err)
{
        char name[8];
        int r = 0;

        for (int i = 0; i < ST_COUNT && r == 0; i++) {
                PGresult *res;

                if (!PQsendPrepare(conn, statement_name((enum statement)i, name), statement_sql[i], 0, NULL))
                        return pg_fail(pg, conn, NULL, err);
                for (;;) {
                        int got = pg_result(pg, conn, &res, err);

                        if (got != 0)
                                return got;
                        if (!res)
                                break;
                        if (pg_failed(res))
                                r = pg_fail(pg, conn, res, err);
                        PQclear(res);
                }
        }
        return r;
}

/* ---- transactions */

/* A transaction that is being sent. */
struct transaction {
        struct postgres *pg;
        uint64_t number;
        void (*send)(struct transaction *t, void *arg); /* sends its statements, each with call() */
        void *arg;
        bool unsent;                      /* a statement could not be queued */
        uint64_t changed[STATEMENTS_MAX]; /* number of rows changed by each statement */
        uint64_t returned[2];             /* result of ST_TERM */
};

static void statement_call(struct transaction *t, enum statement which, struct pg_params *p)
{
        static const struct pg_params none;
        char name[8];

        if (!p)
                p = (struct pg_params *)&none;
        if (!t->unsent && !PQsendQueryPrepared(t->pg->conn, statement_name(which, name), p->count, p->values,
                                               p->lengths, p->formats, 1))
                t->unsent = true;
}

static void note_result(struct transaction *t, unsigned at, const PGresult *res)
{
        if (at < STATEMENTS_MAX)
                t->changed[at] = strtoull(PQcmdTuples((PGresult *)res), NULL, 10);
        if (PQntuples(res) == 1 && PQnfields(res) == 2)
                for (int i = 0; i < 2; i++)
                        t->returned[i] = pg_number(res, 0, i);
}

/* Reads the answers up to the end of the pipeline; returns the first failure. */
static int read_answers(struct transaction *t, struct err *err)
{
        struct postgres *pg = t->pg;
        bool committed = false;
        int r = 0;

        for (unsigned at = 0, nothing = 0;;) {
                PGresult *res;
                int got = pg_result(pg, pg->conn, &res, err);

                if (got != 0)
                        return got;
                if (!res) { /* NULL separates two statements */
                        if (PQstatus(pg->conn) != CONNECTION_OK || ++nothing > 2)
                                return pg_fail(pg, pg->conn, NULL, err);
                        continue;
                }
                nothing = 0;
                if (PQresultStatus(res) == PGRES_PIPELINE_SYNC) {
                        PQclear(res);
                        break;
                }
                if (PQresultStatus(res) == PGRES_PIPELINE_ABORTED) {
                        if (r == 0)
                                r = err_set(err, PG_LOST, "%s did not do a transaction", pg->name);
                } else if (pg_failed(res)) {
                        if (r == 0)
                                r = pg_fail(pg, pg->conn, res, err);
                } else {
                        committed = strcmp(PQcmdStatus(res), "COMMIT") == 0;
                        note_result(t, at, res);
                }
                at++;
                PQclear(res);
        }
        if (r == 0 && !committed)
                r = err_set(err, -EIO, "%s rolled a transaction back without saying why", pg->name);
        return r;
}

static int postgres_rollback(struct postgres *pg, struct err *err)
{
        PGresult *res;
        int r;

        if (PQtransactionStatus(pg->conn) == PQTRANS_IDLE)
                return 0;
        if (!PQsendQueryParams(pg->conn, "ROLLBACK", 0, NULL, NULL, NULL, NULL, 0) ||
            !PQpipelineSync(pg->conn))
                return PG_LOST;
        for (;;) {
                bool end;

                r = pg_result(pg, pg->conn, &res, err);
                if (r != 0 || PQstatus(pg->conn) != CONNECTION_OK)
                        return PG_LOST;
                end = res && PQresultStatus(res) == PGRES_PIPELINE_SYNC;
                PQclear(res);
                if (end)
                        return 0;
        }
}

/* Sends the transaction once. Returns 0: it is durable. After any other result but PG_LOST it was not
 * applied, and the connection is usable. */
static int attempt(struct transaction *t, bool fenced, struct err *err)
{
        struct postgres *pg = t->pg;
        struct pg_params p = {0};
        int r;

        t->unsent = false;
        statement_call(t, ST_BEGIN, NULL);
        if (fenced) {
                pg_param_number(&p, pg->term);
                pg_param_number(&p, t->number);
                statement_call(t, ST_FENCE, &p);
        }
        t->send(t, t->arg);
        statement_call(t, ST_COMMIT, NULL);
        if (t->unsent || !PQpipelineSync(pg->conn))
                return err_set(err, PG_LOST, "the connection to %s was lost", pg->name);
        r = read_answers(t, err);
        if (r != 0 && r != PG_LOST && postgres_rollback(pg, NULL) != 0)
                return PG_LOST;
        return r;
}

static void trouble(const struct postgres *pg, const char *text)
{
        if (pg->trouble)
                pg->trouble(pg->trouble_arg, text);
}

/* Connects again; tries until until_ms. */
static int reconnect(struct postgres *pg, enum pg_open how, int64_t until_ms, struct err *err)
{
        int64_t wait_ms = AGAIN_FIRST_MS;
        struct err now = {0};
        int r;

        trouble(pg, err && err->text[0] ? err->text : "the connection to the database was lost");
        PQfinish(pg->conn);
        pg->conn = NULL;
        for (;;) {
                uint64_t number = pg->number;

                r = pg_writer_open(pg, how, &now);
                if (r == 0) {
                        struct buf text = {0};

                        buf_printf(&text, "connected to %s again; the last transaction %s", pg->name,
                                   pg->number > number ? "was committed" : "is sent again");
                        trouble(pg, buf_z(&text));
                        buf_deinit(&text);
                        return 0;
                }
                if ((r != PG_LOST && r != STORE_LOCKED && r != STORE_FULL) ||
                    clock_boot_ms() + wait_ms > until_ms)
                        break;
                nanosleep(&(struct timespec){.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000},
                          NULL);
                wait_ms = wait_ms * 2 > AGAIN_LAST_MS ? AGAIN_LAST_MS : wait_ms * 2;
        }
        if (r == PG_LOST || r == STORE_FULL)
                return err_set(err, -ENOTCONN, "%s, and not within %d s after that", now.text,
                               store_postgres_patience_ms / 1000);
        return err_set(err, r, "%s", now.text);
}

/* Makes a transaction durable exactly once. Returns 0; PG_FENCED: another server has taken a newer term;
 * STORE_FULL; STORE_CORRUPT, STORE_FOREIGN or -errno. */
static int transact(struct transaction *t, struct err *err)
{
        struct postgres *pg = t->pg;
        int64_t until_ms = clock_boot_ms() + store_postgres_patience_ms;
        int r;

        t->number = pg->number + 1;
        for (;;) {
                r = pg->conn ? attempt(t, true, err) : err_set(err, PG_LOST, "%s was lost", pg->name);
                if (r != PG_LOST && r != PG_FENCED)
                        break;
                /* A newer term, or this very transaction, may have caused it: the state row shows which. */
                r = reconnect(pg, PG_AGAIN, until_ms, err);
                if (r != 0)
                        break;
                if (pg->number == t->number)
                        break;
                if (pg->number != t->number - 1) {
                        r = pg_corrupt(pg, err, "its number of transactions is %llu, not %llu",
                                       (unsigned long long)pg->number, (unsigned long long)t->number - 1);
                        break;
                }
        }
        if (r == 0)
                pg->number = t->number;
        return r;
}

static void send_term(struct transaction *t, void *arg)
{
        (void)arg;
        statement_call(t, ST_TERM, NULL);
}

/* A term that was taken without the answer arriving is skipped. */
int postgres_term_take(struct store_backend *be, uint64_t *ret_term, struct err *err)
{
        struct postgres *pg = (struct postgres *)be;
        struct transaction t = {.pg = pg, .send = send_term};
        int64_t until_ms = clock_boot_ms() + store_postgres_patience_ms;
        int r;

        for (;;) {
                r = pg->conn ? attempt(&t, false, err) : PG_LOST;
                if (r == 0) {
                        pg->term = t.returned[0];
                        pg->number = t.returned[1];
                        *ret_term = pg->term;
                        return 0;
                }
                if (r != PG_LOST)
                        return r == STORE_FULL ? -ENOSPC : r;
                r = reconnect(pg, PG_AGAIN_ANY_TERM, until_ms, err);
                if (r != 0)
                        return r;
        }
}

/* ---- groups */

struct group {
        uint64_t seq, rows; /* numbers before the group */
        uint64_t events, cut;
        struct pg_array log_crc, record;
        struct pg_array past[6], owner, past_crc, past_data; /* columns of the history rows */
        struct pg_array put_name, put_crc, put_data, gone;
};

static void group_deinit(struct group *g)
{
        pg_array_deinit(&g->log_crc);
        pg_array_deinit(&g->record);
        for (int i = 0; i < 6; i++)
                pg_array_deinit(&g->past[i]);
        pg_array_deinit(&g->owner);
        pg_array_deinit(&g->past_crc);
        pg_array_deinit(&g->past_data);
        pg_array_deinit(&g->put_name);
        pg_array_deinit(&g->put_crc);
        pg_array_deinit(&g->put_data);
        pg_array_deinit(&g->gone);
}

static void add_history(struct group *g, const struct past_job *h)
{
        const uint64_t numbers[] = {h->request,
                                    h->member,
                                    h->state,
                                    (uint64_t)h->submitted_ms,
                                    (uint64_t)h->ended_ms,
                                    (uint64_t)(int64_t)h->exit_code};
        BUF_CLEANUP struct buf packed = {0};

        store_history_pack(&packed, h);
        for (int i = 0; i < 6; i++)
                pg_array_number(&g->past[i], numbers[i]);
        pg_array_bytes(&g->owner, h->owner);
        pg_array_number(&g->past_crc, pack_crc32c(0, packed.p, packed.n));
        pg_array_bytes(&g->past_data, h->data);
}

/* Only the last operation on each blob of the group counts; `blobs` has its position. */
static void add_batch(struct group *g, const struct store_batch *b, struct map *blobs)
{
        struct unpack u = store_batch_ops(b);
        struct store_op op;
        const unsigned char *at = u.p;

        for (; store_batch_next(&u, &op); at = u.p) {
                switch (op.kind) {
                case STORE_OP_EVENT:
                        g->events++;
                        pg_array_number(&g->log_crc, store_record_crc(g->seq + g->events, op.data));
                        pg_array_bytes(&g->record, op.data);
                        break;
                case STORE_OP_HISTORY: add_history(g, &op.history); break;
                case STORE_OP_BLOB_PUT:
                case STORE_OP_BLOB_DELETE: map_put(blobs, op.name, (void *)at); break;
                case STORE_OP_HISTORY_CUT: g->cut = op.row > g->cut ? op.row : g->cut; break;
                }
        }
}

/* Adds the last operations on blobs, in the group's order. */
static void add_blobs(struct group *g, const struct store_batch *b, const struct map *blobs)
{
        struct unpack u = store_batch_ops(b);
        struct store_op op;
        const unsigned char *at = u.p;

        for (; store_batch_next(&u, &op); at = u.p) {
                if ((op.kind != STORE_OP_BLOB_PUT && op.kind != STORE_OP_BLOB_DELETE) ||
                    map_get(blobs, op.name) != at)
                        continue;
                if (op.kind == STORE_OP_BLOB_DELETE) {
                        pg_array_bytes(&g->gone, op.name);
                        continue;
                }
                pg_array_bytes(&g->put_name, op.name);
                pg_array_number(&g->put_crc, store_record_crc(op.name.n, op.data));
                pg_array_bytes(&g->put_data, op.data);
        }
}

static void send_group(struct transaction *t, void *arg)
{
        struct group *g = arg;

        if (g->events) {
                struct pg_params p = {0};

                pg_param_number(&p, g->seq);
                pg_param_array(&p, &g->log_crc);
                pg_param_array(&p, &g->record);
                statement_call(t, ST_LOG, &p);
        }
        if (g->cut) {
                struct pg_params p = {0};

                pg_param_number(&p, g->cut);
                statement_call(t, ST_HISTORY_CUT, &p);
        }
        if (g->owner.count) {
                struct pg_params p = {0};

                pg_param_number(&p, g->rows);
                for (int i = 0; i < 6; i++)
                        pg_param_array(&p, &g->past[i]);
                pg_param_array(&p, &g->owner);
                pg_param_array(&p, &g->past_crc);
                pg_param_array(&p, &g->past_data);
                statement_call(t, ST_HISTORY, &p);
        }
        if (g->put_name.count) {
                struct pg_params p = {0};

                pg_param_array(&p, &g->put_name);
                pg_param_array(&p, &g->put_crc);
                pg_param_array(&p, &g->put_data);
                statement_call(t, ST_BLOB_PUT, &p);
        }
        if (g->gone.count) {
                struct pg_params p = {0};

                pg_param_array(&p, &g->gone);
                statement_call(t, ST_BLOB_DELETE, &p);
        }
}

int postgres_commit(struct store_backend *be, struct store_batch *first, uint64_t *last_seq, struct err *err)
{
        struct postgres *pg = (struct postgres *)be;
        struct group g = {.seq = *last_seq, .rows = pg->rows};
        struct transaction t = {.pg = pg, .send = send_group, .arg = &g};
        struct map *blobs = map_new();
        bool any = false;
        int r = 0;

        for (struct store_batch *b = first; b; b = b->next) {
                b->result = b->term == pg->term ? STORE_DURABLE : STORE_STALE_TERM;
                if (b->result == STORE_DURABLE) {
                        any = true;
                        add_batch(&g, b, blobs);
                }
                b->last_seq = g.seq + g.events;
        }
        if (map_count(blobs) > 0)
                for (const struct store_batch *b = first; b; b = b->next)
                        if (b->result == STORE_DURABLE)
                                add_blobs(&g, b, blobs);
        map_free(blobs);
        if (any)
                r = transact(&t, err);
        if (r == 0) {
                *last_seq = pg->last_seq = g.seq + g.events;
                pg->rows = g.rows + g.owner.count;
                if (any && pg->mark_fd >= 0)
                        store_mark_write(pg->mark_fd, STORE_MARK_OPEN, *last_seq);
                if (any)
                        pg->be.lost = false;
        }
        if (r == PG_FENCED) {
                for (struct store_batch *b = first; b; b = b->next) {
                        b->result = STORE_STALE_TERM;
                        b->last_seq = *last_seq;
                }
                r = 0;
        }
        group_deinit(&g);
        return r;
}

/* ---- snapshots */

enum snapshot_phase { CLEAN_BEFORE, WRITE_PARTS, TIDY_AFTER };

struct slice {
        const struct store_snapshot *sn;
        int64_t id;    /* of the snapshot that is being written */
        size_t offset; /* the offset after this slice */
        bool new;      /* the slice begins the snapshot */
};

static void send_part(struct transaction *t, int64_t id, struct str part)
{
        struct pg_params p = {0};

        pg_param_number(&p, (uint64_t)id);
        pg_param_number(&p, store_record_crc((uint64_t)id, part));
        pg_param_bytes(&p, part);
        statement_call(t, ST_SNAPSHOT_PART, &p);
}

static void send_parts(struct transaction *t, void *arg)
{
        struct slice *s = arg;
        const struct store_snapshot *sn = s->sn;
        size_t offset = sn->offset;

        if (s->new) {
                struct pg_params p = {0};

                pg_param_number(&p, (uint64_t)s->id);
                pg_param_number(&p, sn->seq);
                pg_param_number(&p, sn->data.n);
                statement_call(t, ST_SNAPSHOT_NEW, &p);
        }
        for (int i = 0; i < PARTS_PER_SLICE && offset < sn->data.n; i++) {
                struct str part = str_head(str_skip(sn->data, offset), PART_BYTES);

                send_part(t, PART_ID(s->id, (int64_t)(offset / PART_BYTES)), part);
                offset += part.n;
        }
        s->offset = offset;
        if (offset == sn->data.n) {
                struct pg_params done = {0}, cut = {0};

                pg_param_number(&done, (uint64_t)s->id);
                statement_call(t, ST_SNAPSHOT_COMPLETE, &done);
                pg_param_number(&cut, sn->cut_to);
                statement_call(t, ST_CUT, &cut);
        }
}

/* Deletes some unneeded rows. All are deleted when the first two statements change nothing. */
static void send_tidy(struct transaction *t, void *arg)
{
        (void)arg;
        statement_call(t, ST_TIDY_PARTS, NULL);
        statement_call(t, ST_TIDY_LOG, NULL);
        statement_call(t, ST_TIDY_SNAPSHOTS, NULL);
}

int postgres_snapshot_slice(struct store_backend *be, struct store_snapshot *sn, struct err *err)
{
        struct postgres *pg = (struct postgres *)be;
        struct slice s = {.sn = sn, .new = sn->offset == 0};
        struct transaction t = {.pg = pg, .arg = &s};
        bool more;
        int r;

        if (sn->term != pg->term)
                return err_set(err, STORE_STALE_TERM, "another server holds a newer term");
        t.send = sn->phase == WRITE_PARTS ? send_parts : send_tidy;
        s.id = pg->snapshot_id + (s.new ? 1 : 0);
        r = transact(&t, err);
        if (r == PG_FENCED)
                return err_set(err, STORE_STALE_TERM, "another server holds a newer term");
        if (r != 0)
                return r;
        more = t.changed[TIDY_AT] > 0 || t.changed[TIDY_AT + 1] > 0;
        switch ((enum snapshot_phase)sn->phase) {
        case CLEAN_BEFORE: sn->phase = more ? CLEAN_BEFORE : WRITE_PARTS; break;
        case WRITE_PARTS:
                pg->snapshot_id = s.id;
                sn->offset = s.offset;
                if (sn->offset < sn->data.n)
                        break;
                sn->durable = true;
                sn->phase = TIDY_AFTER;
                break;
        case TIDY_AFTER: sn->done = !more; break;
        }
        return 0;
}
