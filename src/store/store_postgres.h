/* store_postgres: shared by the files of the PostgreSQL back end. Private to store/.
 *
 * Every call on a connection has a deadline. A connection that is lost, or silent for longer, is closed. */
#pragma once
#include <libpq-fe.h>
#include <pthread.h>

#include "store/backend.h"

/* Results of the functions below, beside those of store.h and -errno. They never leave the back end. */
enum {
        /* the connection is lost, or the statement was cancelled: try again on a new connection */
        PG_LOST = 1000,
        PG_FENCED, /* the state row is not as this server left it */
};

#define PG_READERS_MAX 8 /* idle connections that are kept */

struct postgres {
        struct store_backend be;
        char *address;
        char *name; /* name of the database for messages, never with a password */
        char store_id[40];
        char *beside; /* path of the files on this machine's disk; NULL: none */
        int mark_fd;
        store_trouble_fn *trouble;
        void *trouble_arg;

        /* The writer's connection; only for the store's thread. */
        PGconn *conn; /* NULL when it is lost */
        int backend;  /* process id of its server process, also after it was lost */
        uint64_t term, number;
        uint64_t rows; /* id of the last history row */
        uint64_t last_seq;
        int64_t snapshot_id; /* of the last snapshot */

        pthread_mutex_t readers_lock;
        PGconn *readers[PG_READERS_MAX];
        unsigned reader_count;
};

/* How long the writer and a reader try to connect again, and how long one step may take, in milliseconds.
 * Tests lower them before they open a store. */
extern int store_postgres_patience_ms, store_postgres_read_patience_ms, store_postgres_silence_ms;

/* Sets pg->name from pg->address. Returns 0 or -EINVAL. */
int pg_name(struct postgres *pg, struct err *err);
/* The same as store_open, without its thread. */
int pg_open(const char *address, const struct store_place *place, struct postgres **ret, struct err *err);
void pg_close(struct postgres *pg);
/* Makes a connection with its session settings. Returns 0; PG_LOST when the server does not answer or is
 * not ready; or -errno; with err. */
int pg_connect(const struct postgres *pg, PGconn **ret, struct err *err);
/* Returns the next result of a statement, or NULL in *ret at the end. Returns 0, or PG_LOST with err. */
int pg_result(const struct postgres *pg, PGconn *conn, PGresult **ret, struct err *err);
/* Runs one or more statements without parameters. *ret (may be NULL) is the last result, which the caller
 * clears. Returns 0, PG_LOST, STORE_FULL, STORE_CORRUPT or -errno, with err. */
int pg_run(const struct postgres *pg, PGconn *conn, const char *sql, PGresult **ret, struct err *err);
/* Returns what a failed result means, with text. res NULL: what the connection reports. */
int pg_fail(const struct postgres *pg, PGconn *conn, const PGresult *res, struct err *err);
bool pg_failed(const PGresult *res);
int pg_corrupt(const struct postgres *pg, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Values of parameters and columns in binary format. */
struct pg_params {
        const char *values[12];
        int lengths[12], formats[12];
        uint64_t numbers[12]; /* storage for the values of pg_param_number */
        int count;
};
void pg_param_number(struct pg_params *p, uint64_t v);
void pg_param_bytes(struct pg_params *p, struct str s);
uint64_t pg_number(const PGresult *res, int row, int column); /* value of a bigint; 0 for NULL */
struct str pg_bytes(const PGresult *res, int row, int column);

/* An array of numbers (bigint[]) or byte strings (bytea[]) as a parameter. */
struct pg_array {
        struct buf b;
        uint32_t count;
};
void pg_array_number(struct pg_array *a, uint64_t v);
void pg_array_bytes(struct pg_array *a, struct str s);
void pg_param_array(struct pg_params *p,
                    struct pg_array *a); /* the array must have an element; it may be sent again */
void pg_array_deinit(struct pg_array *a);

enum pg_open {
        PG_FIRST,
        PG_AGAIN,          /* after a lost connection: the log must be as this server left it */
        PG_AGAIN_ANY_TERM, /* the same, but a new term may have been taken */
};
/* Prepares the writer's connection: locks out other servers, prepares statements, reads and compares the
 * state. Returns 0, PG_LOST, PG_FENCED, or a result of store_open. */
int pg_writer_open(struct postgres *pg, enum pg_open how, struct err *err);
int pg_prepare_writer(const struct postgres *pg, PGconn *conn, struct err *err);
void pg_readers_close(struct postgres *pg);

int postgres_term_take(struct store_backend *be, uint64_t *ret_term, struct err *err);
int postgres_commit(struct store_backend *be, struct store_batch *first, uint64_t *last_seq, struct err *err);
int postgres_snapshot_slice(struct store_backend *be, struct store_snapshot *sn, struct err *err);
/* All records up to the snapshot's may have been deleted. */
#define PG_LAST                                                                                              \
        "greatest((SELECT coalesce(max(seq), 0) FROM drover_log), cut,"                                      \
        " (SELECT coalesce(max(seq), 0) FROM drover_snapshot WHERE complete))"
int postgres_follow_last(struct store_backend *be, uint64_t *ret_seq, struct err *err);
int postgres_scan(struct store_backend *be, uint64_t from, store_scan_fn *fn, void *arg, struct err *err);
int postgres_snapshot_get(struct store_backend *be, uint64_t *ret_seq, struct buf *ret_data, struct err *err);
int postgres_blob_get(struct store_backend *be, struct str name, struct buf *ret_data, struct err *err);
int postgres_blob_list(struct store_backend *be, struct str prefix, struct str from, store_name_fn *fn,
                       void *arg, struct err *err);
int postgres_history(struct store_backend *be, const struct store_query *q, store_history_fn *fn, void *arg,
                     struct err *err);
