/* json_skim: some members of a JSON document, taken while it comes.
 *
 * For answers that may be far larger than what is wanted of them: the document (RFC 8259) is an object; it is
 * given in pieces, cut anywhere, and of it rows are told: the object itself, and the objects in lists that
 * are members of it. Nothing else is kept.
 *
 *   {"id": 7, "jobs": [{"name": "a", "state": {"now": "R", "flags": ["x", "y"]}}, ...]}
 *
 * With the fields "name", "state.now" and "state.flags" of the list "jobs" its first row is a; R; x,y.
 */
#pragma once
#include "base/buf.h"

#define JSON_SKIM_FIELDS 20
#define JSON_SKIM_DEPTH  32
#define JSON_SKIM_VALUE  65536 /* bytes of a value that are kept */

struct json_skim_rows {
        const char *list;          /* a member of the document; NULL: the document itself, told at its end */
        const char *const *fields; /* at most JSON_SKIM_FIELDS; NULL behind the last */
};
/* values[i]: of fields[i], borrowed: a text without its quotes, a number, "true" or "false" as they stand;
 * what is in a list with commas between; empty: null, or not there. */
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
        size_t path_at[JSON_SKIM_DEPTH]; /* the length of its own path */
        struct buf path;                 /* keys from the document down, with dots between */
        size_t base;                     /* of it, where a row's begins */
        bool key, escaped;
        struct buf text, *to; /* the value that comes goes there; NULL: it is not wanted */
        struct json_skim_row whole, row;
};

/* rows is borrowed. */
void json_skim_init(struct json_skim *s, const struct json_skim_rows *rows, json_skim_fn *fn, void *arg);
void json_skim_deinit(struct json_skim *s);
/* 0, or -EINVAL: it is not JSON (of texts only where they end is looked at), not an object, or too deep; then
 * nothing more is told. */
int json_skim_take(struct json_skim *s, struct str part);
bool json_skim_done(const struct json_skim *s); /* the document has come to its end */
