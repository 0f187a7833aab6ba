/* front: the thread with all sockets: agents' sessions (peers.h) and the HTTP API.
 *
 * Everything is made and listening before the thread starts; from front_start on only tasks reach it.
 */
#pragma once
#include "server/daemon/server.h"

struct tls_context;
struct peers;
struct http_server;

struct front {
        struct server *server;
        struct loop *loop;
        struct mailbox *mail;
        struct http_server *http;
        struct peers *peers;
        struct tls_context *tls; /* the server's certificate; asks clients for theirs */
        struct timer *clock;     /* the wall clock is looked at */
        struct map *users;       /* uid as bytes → struct front_user */
        struct bodies *bodies;   /* what their types are */
        char *api_tls;           /* address in use, or NULL */
        size_t agents_max;       /* connections of agents that there are descriptors for */
        uint64_t calls;          /* HTTP requests taken */
};

/* 0 or -errno with err. */
int front_new(struct server *s, struct front **ret, struct err *err);
int front_start(struct front *f, struct err *err);
/* Closes the sockets and ends the thread. Waits for it. */
void front_stop(struct front *f);
void front_free(struct front *f); /* after front_stop; NULL is fine */
