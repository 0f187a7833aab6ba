/* What http.c (connections) and http_reply.c (replies) share. */
#pragma once
#include "ev/http.h"
#include "ev/http_parse.h"
#include "ev/stream.h"

#define HTTP_REQUEST_MAGIC 0x68747265u

enum http_body_state { BODY_UNREAD, BODY_COMES, BODY_READ }; /* BODY_READ: also when there is none */
enum http_reply_state { REPLY_NONE, REPLY_CHUNKS, REPLY_DONE };

/* One connection has one request at a time; the next is read when the reply to the last has ended. */
struct http_request {
        unsigned magic;
        struct loop *loop;
        struct http_conn
                *conn;      /* NULL: an orphan. Its client went away, and its handler did not want to know */
        bool orphan_soon;   /* orphan_drained is deferred */
        struct arena arena; /* the head, and what was decoded of it */
        struct http_head head;
        enum http_body_state body_state;
        struct buf body;
        http_handler_fn *body_fn;
        void *body_arg;
        struct share *bodies; /* of the server, while some of it is taken */
        char *body_holder;
        size_t body_units; /* that are taken */
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
/* What an orphan's handler sent is as good as drained: tells it at the end of the turn, so that it comes to
 * its end. */
void http_orphan_drained(struct http_request *r);
/* The reply has ended, the request is freed: what comes next on the connection? */
void http_conn_next(struct http_conn *c, bool close);
bool http_conn_known(const struct http_conn *c); /* its peer is no stranger */
void http_conn_send(struct http_conn *c, const void *p, size_t n);
struct stream *http_conn_stream(struct http_conn *c);
