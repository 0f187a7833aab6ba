/* dataset: what a description that was posted as text asks the server's catalog and settings. */
#pragma once
#include "server/api/submit/submit_text.h"
#include "server/calls/call.h"

/* What the queries of one text may find: */
#define DATASET_FILES_MAX 200000u
#define DATASET_BYTES_MAX (64u << 20) /* of URLs */
#define DATASET_MS        1000        /* for which they may occupy the catalog's thread */

struct dataset {
        struct server *server;
        const char *who;       /* the caller */
        uint64_t files, bytes; /* found so far */
        int64_t until_ms;
};

/* submit_text.catalog; catalog thread. arg is a struct dataset. Returns 0; -ENOENT, -EACCES: of a catalog of
 * the settings; -EINVAL: of the query; -E2BIG: more than the limits above; -EIO; with err. */
int dataset_find(void *arg, struct str name, struct str query, bool events, const char *order,
                 void (*fn)(void *to, const struct form_found *f), void *to, struct err *err);
/* submit_text.time_limit, for presets that the caller may use. Any thread. Returns as presets_time_limit. */
int dataset_time_limit(void *arg, const struct str named[FORM_PRESET_KINDS], struct form_time_limit *ret,
                       struct err *err);
