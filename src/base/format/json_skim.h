/* json_skim: an incremental JSON reader that keeps chosen members only.
 *
 * Made for answers far larger than the fields wanted from them. The document (RFC 8259) is an object, given
 * in pieces that may be cut anywhere. The reader reports rows: the document itself, and the objects in lists
 * that are members of it. Nothing else is kept.
 *
 *   {"id": 7, "jobs": [{"name": "a", "state": {"now": "R", "flags": ["x", "y"]}}, ...]}
 *
 * The fields "name", "state.now" and "state.flags" of the list "jobs" give a first row of a; R; x,y.
 */
#pragma once
#include "base/buf.h"

#define JSON_SKIM_FIELDS 24
#define JSON_SKIM_DEPTH  32
#define JSON_SKIM_VALUE  65536 /* bytes of a value that are kept */

struct json_skim_rows {
        const char *list;          /* a member of the document; NULL: the document itself, told at its end */
        const char *const *fields; /* at most JSON_SKIM_FIELDS; NULL behind the last */
};
/* values[i] is the value of fields[i], borrowed: a string without its quotes; a number, "true" or "false" as
 * written; the elements of a list, joined by commas; empty: null, or absent. */
typedef void json_skim_fn(void *arg, const struct json_skim_rows *rows, const struct str *values);

struct json_skim_row {
        const struct json_skim_rows *rows; /* NULL: none */
        struct buf values[JSON_SKIM_FIELDS];
};
struct json_skim {
        const struct json_skim_rows *rows; /* a NULL `fields` behind the last */
        json_skim_fn *fn;
        void *arg;
        /* its own */
        int state;
        unsigned depth;
        char stack[JSON_SKIM_DEPTH];     /* '{' or '[' */
        size_t path_at[JSON_SKIM_DEPTH]; /* length of `path` at each level */
        struct buf path;                 /* keys from the document down, with dots between */
        size_t base;                     /* offset in `path` at which a row's part begins */
        bool key, escaped;
        struct buf text, *to; /* to: buffer for the present value; NULL: the value is not wanted */
        struct json_skim_row whole, row;
};

/* rows is borrowed. */
void json_skim_init(struct json_skim *s, const struct json_skim_rows *rows, json_skim_fn *fn, void *arg);
void json_skim_deinit(struct json_skim *s);
/* Takes the next piece. 0, or -EINVAL: the document is not JSON (strings are checked for their end only), not
 * an object, or too deep; no more rows are reported then. */
int json_skim_take(struct json_skim *s, struct str part);
bool json_skim_done(const struct json_skim *s); /* whether the document is complete */
