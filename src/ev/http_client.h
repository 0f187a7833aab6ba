/* http_client: asynchronous HTTP/1.1 calls (RFC 9112) to a server over a unix socket, TCP or TLS.
 *
 * Calls share a few connections that are kept open, one call after the other on each; calls without a free
 * connection are queued. If the server has closed an idle connection, a call that was written to it is
 * repeated on a new one. Calls must therefore be idempotent, or set `once`: then each uses a new connection.
 * Redirections are not followed, and the environment's proxies are not used. All on the loop's thread;
 * answers come from the loop, never from within a call.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "ev/loop.h"
#include "ev/tls.h"

#define HTTP_ANSWER_MAX (64u << 20) /* of a body that is kept in memory */
#define HTTP_NOT_SENT   (-2)
#define HTTP_BUDGET     (192u << 20)

/* Budget of HTTP_BUDGET bytes for the bodies kept in memory by all clients that share it: a call whose answer
 * exceeds it fails. Zeroed at first; outlives its clients. */
struct http_budget {
        size_t used;
};

struct http_client;
struct http_client_config {
        const char *address;     /* as stream_connect has it */
        struct tls_context *tls; /* a client's with a fingerprint, borrowed; NULL: no TLS */
        /* Instead of tls: TLS with a server whose certificate has the address's name and is signed by an
         * authority in this file (PEM), which is read for each connection. NULL: no. */
        const char *ca_file;
        bool authorities; /* as ca_file, with the authorities that this machine trusts */
        /* PEM files with which the client proves who it is, read for each connection; the key may be in the
         * certificate's file. NULL: it does not. */
        const char *certificate_file, *key_file;
        const char *bearer;         /* a token, or NULL */
        unsigned connections;       /* at most; 0: 8 */
        int64_t handshake_ms;       /* connecting and TLS; 0: 10 s */
        struct http_budget *budget; /* borrowed; NULL: the client has one of its own */
};
struct http_client *http_client_new(struct loop *l, const struct http_client_config *c); /* copies it */
void http_client_free(struct http_client *c); /* calls under way are not answered any more; NULL is fine */
/* Sends requests to another server from now on, spoken to in the same way. Calls under way to the earlier one
 * end without an answer, each in a turn of its own. */
void http_client_move(struct http_client *c, const char *address);
void http_client_bearer(struct http_client *c, const char *bearer); /* for requests sent from now on */

/* A piece of the body, as it comes; borrowed for the call, in which nothing of the client is called. */
typedef void http_part_fn(void *arg, int status, struct str part);
struct http_call_spec {
        const char *method, *path; /* the path with its query, escaped */
        const char *address;       /* of another server, spoken to in the same way; NULL: the client's */
        const char *type;          /* of the body; NULL: application/json */
        const char *fields;        /* of the head, more lines, each with its CR LF; NULL: none */
        struct str body;           /* copied */
        /* With from_file: instead of `body`, from_size bytes of the file from_fd, from its beginning;
         * borrowed until the answer. */
        int from_fd;
        bool from_file;
        uint64_t from_size;
        int64_t timeout_ms; /* with connecting, from when its turn has come; 0: 60 s */
        int fd; /* with to_fd: where the body of a good answer is written, borrowed until the answer */
        bool to_fd;
        bool limited; /* with to_fd: the body is no longer than `limit` bytes, or cannot be written */
        uint64_t limit;
        size_t max;         /* bytes of a body that is kept; 0: HTTP_ANSWER_MAX */
        bool once;          /* never repeat the call: it is not idempotent */
        http_part_fn *part; /* gets the body in pieces, and none is kept; NULL: the body is kept */
};
/* status 0: there was no answer, and err says why; HTTP_NOT_SENT: that, and the server cannot have heard of
 * it, which is told of calls with `once` only; -1: the body could not be written to fd, and err says why. The
 * body is borrowed for the time of the call; empty with to_fd. The call is freed after it. */
typedef void http_call_fn(void *arg, int status, struct str body, const struct err *err);
struct http_call;
struct http_call *http_client_call(struct http_client *c, const struct http_call_spec *spec, http_call_fn *fn,
                                   void *arg);
void http_call_cancel(struct http_call *call); /* the callback is not called any more; NULL is fine */
