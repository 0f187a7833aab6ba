/* state: what the files of mirror/ share. Private to mirror/. */
#pragma once
#include <pthread.h>

#include "ev/http.h"
#include "ev/http_client.h"
#include "server/loop/thread.h"
#include "server/mirror/mirror.h"
#include "server/mirror/relation.h"
#include "server/mirror/standing.h"
#include "server/mirror/window.h"
#include "spool/spool.h"

#define MIRROR_PIECE (4u << 20)       /* bytes of a group in one call */
#define MIRROR_AT    STR("mirror/at") /* blob: the position of the store that has it */
#define MIRROR_FIELD 64

struct mirror_pull; /* follow.c */
struct mirror_copy; /* serve.c */

struct mirror {
        struct server *server;
        const struct config_mirror *config;
        struct thread *thread;
        struct loop *loop;
        struct tls_context *server_tls, *client_tls;
        struct http_server *http;  /* for the other server */
        struct standing *standing; /* while this server does not lead */
        struct http_client *client;
        char secret[65];
        bool first; /* there is a queue that was never mirrored */
        struct store_mirror hooks;
        struct watch_signal *terminate, *interrupt;
        struct timer *look, *beat, *leave;

        pthread_mutex_t lock;
        pthread_cond_t changed;
        /* ---- behind the lock */
        struct relation r;
        struct window window;
        bool go;         /* this server leads, and may open its store */
        bool tried;      /* the other server was asked once */
        bool peer_known; /* peer_at is where the follower's store is */
        struct relation_at peer_at;
        int64_t peer_heard_ms;    /* boot clock: last answer; 0: none since the start */
        int64_t close_until_ms;   /* the follower is about to have all: commits wait for it until then */
        struct relation_at acked; /* newest position that the follower has said to have */
        int64_t waits_since_ms;   /* a commit waits for the follower since then; 0: none */
        struct store *store;      /* of the leader, for snapshots; NULL: closed */
        uint64_t snapshot;        /* newest that this server has */
        bool copying;             /* the follower's store is being replaced */
        bool leaving;             /* the process ends while it does not lead */
        bool handed;              /* the other server has heard that it leads, or is not told */

        /* ---- the mirror's thread */
        struct http_call *beat_call, *append_call;
        struct relation_beat beat_sent, append_sent;
        int64_t beat_sent_ms, append_sent_ms;
        struct {
                struct relation_at before, at;
                size_t offset, size;
        } append;    /* the group in progress */
        bool ending; /* hands over */
        /* follower */
        struct store *copy; /* this server's store, while it follows */
        uint64_t term;
        struct spool *spool;
        struct buf group; /* pieces of the group that is arriving */
        struct relation_at group_at;
        struct http_call *snapshot_call;
        struct mirror_pull *pull;    /* files that are being fetched; NULL: none */
        struct mirror_copy *serving; /* a copy of the database that is made for the follower */
};

/* ---- mirror.c; with the lock held */
/* Writes what the relation keeps. A failure ends the process: nothing may follow from what is not kept. */
void mirror_keep(struct mirror *m);
void mirror_deposed(const struct mirror *m)
        __attribute__((noreturn));                                 /* the other server leads: this one ends */
void mirror_end(const struct mirror *m) __attribute__((noreturn)); /* ends the process with an error */
uint64_t mirror_random(void);
/* The mirror's thread; without the lock. */
void mirror_follow_open(struct mirror *m); /* opens this server's store as a copy */
void mirror_follow_close(struct mirror *m);

/* ---- lead.c; the mirror's thread, without the lock */
void lead_beat(struct mirror *m);
void lead_pump(struct mirror *m);
void lead_stop(struct mirror *m);
int lead_before(void *arg, const struct str *ops, size_t count, struct store_batch *add, struct err *err);
void lead_after(void *arg, bool committed);

/* ---- follow.c; the mirror's thread, without the lock */
void follow_append(struct mirror *m, struct http_request *r, const struct relation_beat *b);
/* Begins to copy the leader's database, if this server's store is at this position, and nothing is copied
 * yet. */
void follow_copy(struct mirror *m, struct relation_at useless);
void follow_snapshot(struct mirror *m,
                     uint64_t seq); /* fetches the leader's snapshot, if it has a newer one */
void follow_stop(struct mirror *m);

/* ---- serve.c; the mirror's thread */
void serve_request(void *arg, struct http_request *r);
void serve_said(struct mirror *m, struct http_request *r); /* answers with where this server is; no lock */
void serve_stop(struct mirror *m);
void serve_refuse(struct http_request *r, int status, const char *why); /* answers with a line of text */
uint64_t serve_number(const struct http_request *r, const char *name);  /* of the query; 0: none */
/* The query of a beat, and the answer. */
void serve_write_beat(struct buf *to, const struct relation_beat *b);
bool serve_read_said(struct str text, struct relation_said *ret);
