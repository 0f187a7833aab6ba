/* http_private: shared by http.c (connections) and http_reply.c (replies). */
#pragma once
#include "ev/http.h"
#include "ev/http_parse.h"
#include "ev/stream.h"

#define HTTP_REQUEST_MAGIC 0x68747265u

enum http_body_state { BODY_UNREAD, BODY_COMES, BODY_READ }; /* BODY_READ: also when there is none */
enum http_reply_state { REPLY_NONE, REPLY_CHUNKS, REPLY_DONE };

/* A request. A connection has one at a time; the next is read when the reply to the last has ended. */
struct http_request {
        unsigned magic;
        struct loop *loop;
        struct http_conn
                *conn;    /* NULL: an orphan, whose client went away and whose handler has set no on_close */
        bool orphan_soon; /* orphan_drained is deferred */
        struct arena arena; /* the head, and its decoded parts */
        struct http_head head;
        enum http_body_state body_state;
        struct buf body;
        http_handler_fn *body_fn;
        void *body_arg;
        struct share *bodies; /* the server's share of bodies, while places of it are taken */
        char *body_holder;
        size_t body_units; /* number of places taken */
        enum http_reply_state reply;
        bool raw;          /* a reply in pieces without chunks: to HTTP/1.0, to HEAD */
        bool close;        /* after the reply */
        struct buf fields; /* of the reply */
        void (*on_close)(void *arg, struct http_request *r);
        void *on_close_arg;
        void (*drained)(void *arg, struct http_request *r);
        void *drained_arg;
};

void http_request_free(struct http_request *r);
/* Calls an orphan's `drained` at the end of the turn, so that its handler goes on and finishes the answer. */
void http_orphan_drained(struct http_request *r);
/* Goes on with the connection after a reply has ended and its request is freed: closes it, or reads the next
 * request. */
void http_conn_next(struct http_conn *c, bool close);
bool http_conn_known(const struct http_conn *c); /* its peer is no stranger */
void http_conn_send(struct http_conn *c, const void *p, size_t n);
struct stream *http_conn_stream(struct http_conn *c);
