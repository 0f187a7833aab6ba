/* catalog: a catalog of files, with their metadata and the places of their copies.
 *
 * A logical file has a name, and may have a size, a checksum, metadata (typed values under keys) and
 * replicas: URLs of copies, each either on one host's own disk or reachable from anywhere. A dataset is a
 * saved query, or a list of files. query.h describes queries.
 *
 * A catalog is opened by address: "sqlite:/path/file.db" (created when absent, mode 0600; "sqlite:" alone
 * keeps everything in memory, for tests). A back end is one struct of functions (catalog_backend.h). A
 * writing call returns when its data survives kill -9 and a power cut; the data is stored as a whole or
 * not at all. One thread at a time; calls block on the disk. A query returns pages that end at a time the
 * caller names, so that no query occupies the thread for long.
 *
 * Limits: those below, and CATALOG_BATCH_MAX files in one writing call. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define CATALOG_NAME_MAX     1024u /* bytes of a file's name, and of a host's, store's and dataset's */
#define CATALOG_URL_MAX      4096u
#define CATALOG_CHECKSUM_MAX 200u
#define CATALOG_KEY_MAX      64u /* a key is a ClassAd name: a letter or _, then letters, digits, _ */
#define CATALOG_VALUE_MAX    1024u
#define CATALOG_META_MAX     100u  /* keys of one file */
#define CATALOG_KEYS_MAX     1000u /* different keys in a catalog */
#define CATALOG_REPLICAS_MAX 64u   /* of one file */
#define CATALOG_BATCH_MAX    20000u
#define CATALOG_DATASETS_MAX 100000u
#define CATALOG_FILES_MAX    1000000000u /* ever added to one catalog */

enum catalog_error {
        CATALOG_INVALID = 1, /* the arguments are invalid; err says why, nothing was changed */
        CATALOG_CONFLICT,    /* a file exists with another size or checksum; nothing was changed */
        CATALOG_NOT_FOUND,
        CATALOG_FULL,    /* no space; nothing was changed */
        CATALOG_CORRUPT, /* the data is damaged; err names the file */
        CATALOG_TOO_NEW, /* made by a newer version */
};

enum catalog_type { CATALOG_TEXT, CATALOG_INTEGER, CATALOG_REAL, CATALOG_BOOLEAN };

struct catalog_value {
        enum catalog_type type;
        union {
                struct str text;
                int64_t integer;
                double real; /* finite */
                bool boolean;
        };
};
struct catalog_meta {
        struct str key;
        struct catalog_value value;
};
struct catalog_replica {
        struct str url;
        struct str host;  /* the host on whose own disk it is; empty: the URL works from anywhere */
        struct str store; /* a name for the kind of storage; may be empty */
};
struct catalog_file {
        struct str name;
        bool has_size;
        uint64_t size;       /* bytes */
        struct str checksum; /* "sha256:HEX"; empty: unknown */
        const struct catalog_meta *meta;
        size_t meta_count;
        const struct catalog_replica *replicas;
        size_t replica_count;
};

struct catalog;
/* Returns 0; CATALOG_CORRUPT, CATALOG_TOO_NEW, CATALOG_FULL, CATALOG_INVALID (an invalid address) or
 * -errno, with err. */
int catalog_open(const char *address, struct catalog **ret, struct err *err);
void catalog_close(struct catalog *c); /* accepts NULL */

struct catalog_put {
        bool replace; /* an existing file is replaced by the given one; otherwise the two are merged */
};
struct catalog_counts {
        uint64_t added, changed; /* numbers of files */
};
/* Adds files, or merges the given data into existing ones: size and checksum if unknown so far, metadata
 * (a value replaces the one of its key), replicas (by URL). A name may be in `files` more than once.
 * Returns 0; CATALOG_INVALID, CATALOG_CONFLICT, CATALOG_FULL, CATALOG_CORRUPT or -errno with err, which
 * names the file. */
int catalog_put(struct catalog *c, const struct catalog_file *files, size_t count,
                const struct catalog_put *how, struct catalog_counts *ret, struct err *err);
/* Removes files, or only their replicas with this URL if it is not empty. Unknown names are ignored.
 * *ret_removed: number of files or replicas. Returns as catalog_put. */
int catalog_remove(struct catalog *c, const struct str *names, size_t count, struct str url,
                   uint64_t *ret_removed, struct err *err);

struct catalog_find {
        struct str query;    /* see query.h; empty: every file */
        uint64_t after;      /* `next` of the previous page; 0: from the beginning */
        uint64_t given;      /* files returned by the previous pages, for the query's own limit */
        uint32_t page;       /* maximum number of files; 0: no limit */
        int64_t deadline_ms; /* clock_boot_ms: the latest end of the page; 0: no deadline */
        bool count;          /* counts files without returning them */
        bool meta;           /* returns files with their metadata */
};
struct catalog_found {
        uint64_t next; /* `after` of the next page; 0: there is none */
        /* files returned or counted in this page; bytes of those with a known size */
        uint64_t files, bytes;
};
/* Calls fn for each file, in the order in which they were added, with the replicas that match the query.
 * `file` is valid until fn returns; a nonzero result ends the page after this file, and is returned.
 * Returns 0; CATALOG_INVALID (the query), CATALOG_NOT_FOUND (a dataset that it names), CATALOG_CORRUPT or
 * -errno with err. */
typedef int catalog_file_fn(void *arg, const struct catalog_file *file);
int catalog_find(struct catalog *c, const struct catalog_find *how, catalog_file_fn *fn, void *arg,
                 struct catalog_found *ret, struct err *err);
/* Calls fn for the file with this name, with all its data. Returns 0; CATALOG_NOT_FOUND; or as above. */
int catalog_get(struct catalog *c, struct str name, catalog_file_fn *fn, void *arg, struct err *err);

/* A dataset is either a query or a list of files: */
struct catalog_dataset {
        struct str name;
        struct str owner;        /* the user who saved it */
        struct str query;        /* a query; or */
        const struct str *files; /* names of existing files; catalog_datasets leaves them out */
        size_t file_count;       /* 0: the dataset is a query */
};
/* Saves a dataset, or replaces it. Returns 0; CATALOG_INVALID, CATALOG_NOT_FOUND (a file or dataset that
 * it names); or as catalog_put. */
int catalog_dataset_put(struct catalog *c, const struct catalog_dataset *d, struct err *err);
/* may also return CATALOG_NOT_FOUND */
int catalog_dataset_remove(struct catalog *c, struct str name, struct err *err);
/* Calls fn for each dataset after `after`, sorted by name. A nonzero result of fn ends the call, and is
 * returned. */
typedef int catalog_dataset_fn(void *arg, const struct catalog_dataset *d);
int catalog_datasets(struct catalog *c, struct str after, catalog_dataset_fn *fn, void *arg, struct err *err);

struct catalog_about {
        uint64_t files, keys, datasets;
};
int catalog_about(struct catalog *c, struct catalog_about *ret, struct err *err);
/* Reads all that the catalog has, some seconds for a million files. Returns 0; CATALOG_CORRUPT or -errno with
 * err. */
int catalog_check(struct catalog *c, struct err *err);

/* ---- a log of the changes
 *
 * Each writing call can also be written to a log elsewhere, from which another machine brings a copy of the
 * catalog up to date. Calls that are applied in the same order have the same effects, including the numbers
 * of files that cursors have. A catalog stores the position in the log of its last change, with that change.
 */
struct catalog_position {
        uint64_t number; /* of a change, without gaps; 0: none has been logged */
        uint64_t id;     /* random; changes of two logs with the same number differ in it */
};
/* Appends a change to the log. Returns 0 when it is durable there; CATALOG_FULL if it is not in the log; any
 * other error if that is not known. In both cases nothing changes here, and the writing call returns it. */
typedef int catalog_log_fn(void *arg, struct catalog_position at, struct str change, struct err *err);
/* From now on changes are logged; fn NULL: no longer, and the position is forgotten. While there is a log,
 * the last changes may be missing here after a power cut; catalog_apply adds them again. A catalog without a
 * position gets one, with the number 1. Returns as catalog_put. */
int catalog_log(struct catalog *c, catalog_log_fn *fn, void *arg, struct err *err);
struct catalog_position catalog_position(const struct catalog *c);
/* Returns whether the log may have a change that this catalog does not have: close it, open it again, and
 * apply what is missing. Until then writing calls fail. */
bool catalog_is_behind(const struct catalog *c);
/* Reads the position of a logged change. Returns 0, or CATALOG_CORRUPT with err. */
int catalog_change_at(struct str change, struct catalog_position *ret, struct err *err);
/* Makes the change after catalog_position here too. Returns 0; CATALOG_CORRUPT if it is another change, is
 * damaged, or cannot be made here; or as catalog_put. */
int catalog_apply(struct catalog *c, struct str change, struct err *err);
