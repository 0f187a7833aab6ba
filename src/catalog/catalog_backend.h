/* catalog_backend: the functions that a catalog's back end implements. Private to catalog/.
 *
 * The functions are those of catalog.h, which catalog.c calls after it has checked limits and names. A
 * back end therefore never gets an invalid key, a text that is too long or has control characters, a real
 * number that is not finite, or two replicas of a file with the same URL. A read-only back end leaves the
 * writing functions NULL. tests/conform/conform_catalog.c runs on each back end that writes. */
#pragma once
#include "catalog/catalog.h"
#include "catalog/query.h"

struct catalog {
        const struct catalog_ops *ops;
        /* of catalog.c: */
        catalog_log_fn *log; /* NULL: changes are not logged */
        void *log_arg;
        struct buf change; /* of the writing call under way, if it is logged or applied */
        bool behind;       /* the log may have a change that is not here */
        bool applying;     /* the change comes from the log */
        /* The back end stores it with each change, and sets it when it opens. */
        struct catalog_position position;
};

/* A back end calls it in each writing call when nothing but its commit can fail, then stores the position,
 * and commits. If that fails, it restores the position. Returns 0, or an error with which the call ends. */
int catalog_write_log(struct catalog *c, struct err *err);

struct catalog_ops {
        /* path: the part of the address after "name:" */
        int (*open)(const char *path, struct catalog **ret, struct err *err);
        void (*close)(struct catalog *c);
        int (*find)(struct catalog *c, const struct catalog_query *q, const struct catalog_find *how,
                    catalog_file_fn *fn, void *arg, struct catalog_found *ret, struct err *err);
        int (*get)(struct catalog *c, struct str name, catalog_file_fn *fn, void *arg, struct err *err);
        int (*datasets)(struct catalog *c, struct str after, catalog_dataset_fn *fn, void *arg,
                        struct err *err);
        int (*about)(struct catalog *c, struct catalog_about *ret, struct err *err);
        /* Checks what no query reads. NULL: there is nothing of the kind. */
        int (*check)(struct catalog *c, struct err *err);
        /* ---- writing; NULL: the catalog is read-only */
        int (*put)(struct catalog *c, const struct catalog_file *files, size_t count,
                   const struct catalog_put *how, struct catalog_counts *ret, struct err *err);
        int (*remove)(struct catalog *c, const struct str *names, size_t count, struct str url,
                      uint64_t *ret_removed, struct err *err);
        int (*dataset_put)(struct catalog *c, const struct catalog_dataset *d, struct err *err);
        int (*dataset_remove)(struct catalog *c, struct str name, struct err *err);
        /* Stores the position alone. logged: commits need not be durable one by one. */
        int (*set_logged)(struct catalog *c, bool logged, struct err *err);
};

extern const struct catalog_ops catalog_sqlite;
