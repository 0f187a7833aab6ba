/* store_postgres: what the files of the PostgreSQL back end share. Private to store/.
 *
 * Every call on a connection has a deadline; a connection that was lost, or is silent for longer, is closed.
 */
#pragma once
#include <libpq-fe.h>
#include <pthread.h>

#include "store/backend.h"

/* Results of the calls below beyond those of store.h and -errno. They never leave the back end. */
enum {
        PG_LOST = 1000, /* the connection is gone, or the statement was cancelled: try again on a new one */
        PG_FENCED,      /* the row of state is not as this server left it */
};

#define PG_READERS_MAX 8 /* connections that are kept when idle */

struct postgres {
        struct store_backend be;
        char *address;
        char *name; /* the database, for messages; never with a password */
        char store_id[40];
        char *beside; /* path of what is kept on this machine's disk; NULL: nothing */
        int mark_fd;
        store_trouble_fn *trouble;
        void *trouble_arg;

        /* The writer's connection: the store's thread only. */
        PGconn *conn; /* NULL after it was lost */
        int backend;  /* process id of its server process, also of one that was lost */
        uint64_t term, number;
        uint64_t rows; /* id of the last row of history */
        uint64_t last_seq;
        int64_t snapshot_id; /* of the last snapshot */

        pthread_mutex_t readers_lock;
        PGconn *readers[PG_READERS_MAX];
        unsigned reader_count;
};

/* How long the writer, and a reader, goes on trying to be connected again; and how long one step may take.
 * Tests lower them, before they open a store. Milliseconds. */
extern int store_postgres_patience_ms, store_postgres_read_patience_ms, store_postgres_silence_ms;

/* Sets pg->name from pg->address. 0 or -EINVAL. */
int pg_name(struct postgres *pg, struct err *err);
/* The same as store_open, without its thread. */
int pg_open(const char *address, const struct store_place *place, struct postgres **ret, struct err *err);
void pg_close(struct postgres *pg);
/* A connection with its settings made. 0; PG_LOST when nobody answers there or the database is not ready;
 * -errno; with err. */
int pg_connect(const struct postgres *pg, PGconn **ret, struct err *err);
/* The next result, or NULL at the end of a statement's. 0, or PG_LOST with err. */
int pg_result(const struct postgres *pg, PGconn *conn, PGresult **ret, struct err *err);
/* One or more statements without parameters. *ret (may be NULL) is the last one's result; the caller clears
 * it. 0, PG_LOST, STORE_FULL, STORE_CORRUPT, -errno, with err. */
int pg_run(const struct postgres *pg, PGconn *conn, const char *sql, PGresult **ret, struct err *err);
/* What a failed result means here, with text. res NULL: what the connection says. */
int pg_fail(const struct postgres *pg, PGconn *conn, const PGresult *res, struct err *err);
bool pg_failed(const PGresult *res);
int pg_corrupt(const struct postgres *pg, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Values of parameters and columns in binary form. */
struct pg_params {
        const char *values[12];
        int lengths[12], formats[12];
        uint64_t numbers[12]; /* where values of pg_param_number point */
        int count;
};
void pg_param_number(struct pg_params *p, uint64_t v);
void pg_param_bytes(struct pg_params *p, struct str s);
uint64_t pg_number(const PGresult *res, int row, int column); /* of a bigint; 0 for NULL */
struct str pg_bytes(const PGresult *res, int row, int column);

/* An array of numbers (bigint[]) or byte strings (bytea[]) as a parameter. */
struct pg_array {
        struct buf b;
        uint32_t count;
};
void pg_array_number(struct pg_array *a, uint64_t v);
void pg_array_bytes(struct pg_array *a, struct str s);
void pg_param_array(struct pg_params *p,
                    struct pg_array *a); /* which must have an element; it may be sent again */
void pg_array_deinit(struct pg_array *a);

enum pg_open {
        PG_FIRST,
        PG_AGAIN,          /* there was a connection before, and the log must be as it was left */
        PG_AGAIN_ANY_TERM, /* the same, but a new term may have been taken */
};
/* The writer's connection, made ready: locked against other servers, statements prepared, state read and
 * compared. 0, PG_LOST, PG_FENCED, or what store_open returns. */
int pg_writer_open(struct postgres *pg, enum pg_open how, struct err *err);
int pg_prepare_writer(const struct postgres *pg, PGconn *conn, struct err *err);
void pg_readers_close(struct postgres *pg);

int postgres_term_take(struct store_backend *be, uint64_t *ret_term, struct err *err);
int postgres_commit(struct store_backend *be, struct store_batch *first, uint64_t *last_seq, struct err *err);
int postgres_snapshot_slice(struct store_backend *be, struct store_snapshot *sn, struct err *err);
int postgres_scan(struct store_backend *be, uint64_t from, store_scan_fn *fn, void *arg, struct err *err);
int postgres_snapshot_get(struct store_backend *be, uint64_t *ret_seq, struct buf *ret_data, struct err *err);
int postgres_blob_get(struct store_backend *be, struct str name, struct buf *ret_data, struct err *err);
int postgres_blob_list(struct store_backend *be, struct str prefix, store_name_fn *fn, void *arg,
                       struct err *err);
int postgres_history(struct store_backend *be, const struct store_query *q, store_history_fn *fn, void *arg,
                     struct err *err);
