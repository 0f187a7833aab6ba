/* http_parse: the grammar of HTTP/1.1 requests (RFC 9112), apart from any connection. For ev/ and its fuzz
 * target.
 *
 * Strict where leniency lets two readers disagree about where a request ends: lines end in CRLF, no folded
 * lines, no white space before a colon, one length only. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "ev/http.h"

#define HTTP_FIELDS_MAX 64
#define HTTP_BODY_MAX   (8u << 20)

struct http_field {
        struct str name, value;
};
struct http_head {
        enum http_method method;
        struct str path;  /* decoded */
        struct str query; /* as it came */
        struct http_field fields[HTTP_FIELDS_MAX];
        size_t n_fields;
        bool old; /* HTTP/1.0 */
        bool keep_alive;
        bool chunked;  /* the body's length is not known yet */
        size_t length; /* of the body */
        bool expect_continue;
};
/* Returns the length of the head at the start of `text` with its empty line; 0: the head is incomplete. */
size_t http_head_size(struct str text);
/* Parses a head. *ret points into text and the arena. 0; or the HTTP status to refuse the request with (400,
 * 413, 414, 501, 505), and err. */
int http_head_parse(struct arena *a, struct str text, struct http_head *ret, struct err *err);
struct str http_head_field(const struct http_head *h, const char *name); /* the first; empty when absent */

/* Decodes %XX and, if plus, + into the arena. 0; -EINVAL: a malformed %, or %00. */
int http_decode(struct arena *a, struct str text, bool plus, struct str *ret);

/* State of the decoding of a chunked body. {0} at first. */
struct http_chunks {
        enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_END, CHUNK_TRAILER, CHUNK_DONE } state;
        size_t left; /* of the chunk */
        size_t trailer;
};
/* Decodes as much of `text` as is complete and appends the bytes to body; *ret_used is the number of bytes of
 * text used. 0, also when more is to come (see state); or the HTTP status to refuse the request with (400,
 * 413). */
int http_chunks_take(struct http_chunks *c, struct str text, size_t *ret_used, struct buf *body,
                     struct err *err);
