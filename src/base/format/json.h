/* json: writing JSON straight into a buf. (Reading small documents is jansson's.)
 *
 * The writer keeps track of commas only: the caller opens and closes in the right order. Text is written as
 * UTF-8; a byte that is not part of valid UTF-8 becomes U+FFFD, so that what comes out is always JSON.
 *
 *   struct json j = {.out = &buf};
 *   json_open(&j, '{'); json_key(&j, "id"); json_int(&j, 7); json_close(&j, '}');
 */
#pragma once
#include "base/buf.h"

struct json {
        struct buf *out;
        bool comma; /* something stands before in this object or array */
};

void json_open(struct json *j, char bracket);  /* '{' or '[' */
void json_close(struct json *j, char bracket); /* '}' or ']' */
void json_key(struct json *j, const char *key);
void json_keys(struct json *j, struct str key);
void json_str(struct json *j, struct str s);
void json_strz(struct json *j, const char *z); /* NULL writes null */
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_double(struct json *j, double v); /* NaN and infinities write null */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
void json_raw(struct json *j, struct str s); /* s is a JSON value */

/* key and value in one */
void json_kstr(struct json *j, const char *key, struct str s);
void json_kstrz(struct json *j, const char *key, const char *z);
void json_kint(struct json *j, const char *key, int64_t v);
void json_kbool(struct json *j, const char *key, bool v);

/* Appends a JSON string's text, given without its quotes, with the escapes replaced. Half a surrogate
 * pair becomes U+FFFD; a backslash that begins no escape is dropped. */
void json_unescape(struct buf *out, struct str text);
