/* http: an HTTP/1.1 server on a loop, with limits.
 *
 * The handler gets each request when its head has arrived, so that the client is authenticated before any
 * of the body is kept. The handler then asks for the body (http_read_body), or answers without it, which ends
 * the connection. A request is answered at once or later, in one piece or in chunks. A request lives until
 * its answer is complete, or until its client goes away: then on_close is called (once) and the request must
 * not be touched again. If no on_close was set, the request must be answered nevertheless, and the answer is
 * discarded. A client that closes its sending side has gone away. All calls are made on the loop's thread.
 * Requests on one connection (kept alive, pipelined) are handled one after another. The server itself answers
 * malformed requests.
 *
 * Over TCP a peer is a stranger until http_trust, or until it has shown a certificate: the handshake and one
 * head of 4 kB have 5 s together, nothing more is read, 512 connections are strangers', and one that is
 * answered as a stranger's is closed. Others may send 16 kB of head within 5 s and 8 MiB of body within 60 s.
 * Limits for all: 64 header fields, idle connections 60 s, 60 s in which a client takes nothing of its reply,
 * 4096 connections (ev/admission.h says how they are shared), 256 MiB of bodies and 512 MiB of replies that
 * nobody has taken yet, of which one holder may have as many as are free (base/share.h). While a client
 * leaves much of a reply its next request waits.
 */
#pragma once
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "ev/loop.h"
#include "ev/tls.h"

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE, HTTP_OPTIONS };

struct http_server;
struct http_request;
typedef void http_handler_fn(void *arg, struct http_request *r);

struct http_server *http_server_new(struct loop *l, http_handler_fn *fn, void *arg);
struct http_limits { /* 0: as above */
        int64_t head_ms, body_ms, idle_ms, stall_ms;
        size_t connections, strangers, bodies,
                replies; /* bodies, replies: bytes; changed only while there are no connections */
};
void http_server_limits(struct http_server *s,
                        const struct http_limits *limits); /* for new connections and requests */
/* As listener_new in stream.h; tls NULL for none. May be called several times. */
int http_server_listen(struct http_server *s, const char *address, mode_t mode, struct tls_context *tls,
                       const char **ret_address, struct err *err);
/* Calls on_close of the requests that wait. Not from a handler. */
void http_server_free(struct http_server *s);

const char *http_method_name(enum http_method m); /* "GET" */
enum http_method http_method(const struct http_request *r);
struct str http_path(const struct http_request *r); /* decoded, without the query, e.g. "/v1/jobs/7.42" */
bool http_query(const struct http_request *r, const char *name,
                struct str *ret); /* decoded; false when absent */
/* Gives the n-th query parameter of this name, from 0. */
bool http_query_nth(const struct http_request *r, const char *name, size_t n, struct str *ret);
struct str http_header(const struct http_request *r, const char *name); /* empty when absent */
/* Reads the body, then calls fn, at once if there is no body. The body counts for `holder` until the request
 * has ended. If the body is incomplete or too large, the server answers the client, and the request ends as
 * when its client goes away. Call this at most once for a request. */
void http_read_body(struct http_request *r, struct str holder, http_handler_fn *fn, void *arg);
/* Sets a limit below 8 MiB on this request's body, before http_read_body: for calls whose body shows who the
 * caller is. */
void http_limit_body(struct http_request *r, size_t bytes);
struct str http_body(const struct http_request *r); /* empty before that */
/* From now on the body counts for this holder: of a caller whom only the body shows. False: there is no room
 * for it, and the handler answers 503. */
bool http_body_hold(struct http_request *r, struct str holder);
/* Counts `size` more bytes for the holder of the body, until the request has ended, for data that the handler
 * makes of the body. False: there is no room for them, nothing is counted, and the handler answers 503. */
bool http_body_grow(struct http_request *r, size_t size);
/* Counts `size` of these bytes no longer. */
void http_body_shrink(struct http_request *r, size_t size);
int http_peer_uid(const struct http_request *r, uid_t *ret,
                  pid_t *ret_pid);                 /* 0 on a unix socket; else -ENOTSUP */
int http_peer_pidfd(const struct http_request *r); /* as stream_peer_pidfd */
/* The holder of the connection (ev/admission.h): a user of this machine, an address or a network. Empty when
 * the client has gone. Lives with the connection. */
struct str http_peer_holder(const struct http_request *r);
/* A note of the handler about the peer, kept with the connection: 0 at first. */
unsigned http_peer_note(const struct http_request *r);
void http_set_peer_note(struct http_request *r, unsigned note);
void http_trust(struct http_request *r); /* its bearer token was valid: its peer is no stranger any more */
/* Sets fn, which is called if the connection closes before the answer; the request is freed after it. A
 * request without fn stays, as an orphan, until the handler has answered it; the answer is discarded. */
void http_on_close(struct http_request *r, void (*fn)(void *arg, struct http_request *r), void *arg);

void http_add_header(struct http_request *r, const char *name, const char *value); /* before replying */
/* Answers with a body (emptied) and ends the request. content_type NULL: application/json. */
void http_reply(struct http_request *r, int status, const char *content_type, struct buf *body);
/* Has http_reply frame its body as the request's body was framed: in one chunk, if that came in chunks. For
 * protocols whose clients expect chunks. */
void http_reply_as_asked(struct http_request *r);
/* Chunks: start, any number of chunks (emptied), end. `drained` is called each time all was handed to the
 * kernel. */
void http_reply_start(struct http_request *r, int status, const char *content_type,
                      void (*drained)(void *arg, struct http_request *r), void *arg);
void http_reply_chunk(struct http_request *r, struct buf *chunk);
size_t http_reply_pending(const struct http_request *r); /* bytes not yet with the kernel */
void http_reply_end(struct http_request *r);
