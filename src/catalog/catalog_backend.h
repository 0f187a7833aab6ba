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
};

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
        /* ---- writing; NULL: the catalog is read-only */
        int (*put)(struct catalog *c, const struct catalog_file *files, size_t count,
                   const struct catalog_put *how, struct catalog_counts *ret, struct err *err);
        int (*remove)(struct catalog *c, const struct str *names, size_t count, struct str url,
                      uint64_t *ret_removed, struct err *err);
        int (*dataset_put)(struct catalog *c, const struct catalog_dataset *d, struct err *err);
        int (*dataset_remove)(struct catalog *c, struct str name, struct err *err);
};

extern const struct catalog_ops catalog_sqlite;
