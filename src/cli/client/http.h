/* http: a small HTTP/1.1 client on a unix socket (RFC 9112).
 *
 * One connection, one call at a time, blocking with a deadline, kept open between calls. Written here because
 * the command line must start and end in 5 ms: libcurl alone takes longer to load. Over TLS libcurl is used
 * (remote.h).
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* What a call can return; all are positive, and err has a sentence. */
enum http_error {
        HTTP_NO_SERVER = 1, /* nobody listens there */
        HTTP_DENIED,        /* the socket may not be opened */
        HTTP_LOST,          /* the connection broke: the server may or may not have acted */
        HTTP_TIMEOUT,       /* no answer in time; the same */
        HTTP_GARBLED,       /* what came is not HTTP, or is too big */
        HTTP_LOCAL,         /* what arrived could not be written to the file */
};

#define HTTP_HEAD_MAX 65536u
#define HTTP_BODY_MAX (1u << 30) /* of an answer kept in memory */

struct http_request {
        const char *method, *path; /* path with its query, escaped */
        const char *type;          /* content type of the body; NULL: application/json */
        struct str body;
        int timeout_ms; /* for the whole call; 0: 60 s */
        int fd;         /* a 2xx answer's body is written here; -1: into the answer */
};
struct http_answer {
        int status;
        struct buf body;
        uint64_t written; /* bytes to fd */
};
void http_answer_deinit(struct http_answer *a);
#define HTTP_ANSWER_CLEANUP __attribute__((cleanup(http_answer_deinit)))

struct http;
/* Doesn't connect yet. The path is copied. */
struct http *http_new(const char *socket_path);
void http_set_token(struct http *h, const char *token); /* sent with each call; copied */
void http_free(struct http *h);                         /* NULL is fine */
/* 0 with the answer, whatever its status; else an http_error, or -errno. The answer is overwritten; it is the
 * caller's to deinit. A connection that the server closed while idle is opened again without a word, before
 * anything was sent on it. */
int http_call(struct http *h, const struct http_request *r, struct http_answer *ret, struct err *err);
