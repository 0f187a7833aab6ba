/* http: a small HTTP/1.1 client on a unix socket (RFC 9112).
 *
 * One connection, kept open between calls, carries one call at a time; calls block, with a deadline. libcurl
 * is not used here because the command line must start and end within 5 ms, and loading libcurl alone takes
 * longer. Calls over TLS use libcurl (remote.h).
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* Errors of a call; all are positive, and err has a sentence. */
enum http_error {
        HTTP_NO_SERVER = 1, /* nobody listens there */
        HTTP_DENIED,        /* no permission to open the socket */
        HTTP_LOST,          /* the connection broke: the server may or may not have acted */
        HTTP_TIMEOUT,       /* no answer in time: the server may or may not have acted */
        HTTP_GARBLED,       /* the answer is not HTTP, or is too big */
        HTTP_LOCAL,         /* the body could not be written to the file */
};

#define HTTP_HEAD_MAX 65536u
#define HTTP_BODY_MAX (1u << 30) /* maximum bytes of a body that is kept in memory */

struct http_request {
        const char *method, *path; /* path with its query, escaped */
        const char *type;          /* content type of the body; NULL: application/json */
        struct str body;
        int timeout_ms; /* for the whole call; 0: 60 s */
        int fd; /* the body of a 2xx answer is written to this descriptor; -1: it is kept in the answer */
};
struct http_answer {
        int status;
        int64_t standby_ms; /* age of what a server that stands by has answered; -1: not one */
        struct buf body;
        uint64_t written; /* bytes written to fd */
};
void http_answer_deinit(struct http_answer *a);
#define HTTP_ANSWER_CLEANUP __attribute__((cleanup(http_answer_deinit)))

struct http;
/* Makes a client. It connects at the first call. The path is copied. */
struct http *http_new(const char *socket_path);
void http_set_token(struct http *h, const char *token); /* sent with each call; copied */
/* Speaks for this owner (name@domain) with each call, which root and the server's user may. Copied. */
void http_set_owner(struct http *h, const char *owner);
void http_free(struct http *h); /* NULL is fine */
/* Makes the call. Returns 0 with the answer, whatever its status; else an http_error, or -errno. *ret is
 * overwritten, and is the caller's to deinit. If the server has closed the idle connection before anything
 * was sent on it, the connection is opened again. */
int http_call(struct http *h, const struct http_request *r, struct http_answer *ret, struct err *err);
