/* fetch: one file on its way into the cache, for the attempts that wait for it. inputs.c makes and ends
 * fetches; spool.c brings files that were shipped with a submit, fetch_url.c brings files from URLs. */
#pragma once
#include "agent/model/attempt.h"
#include "agent/transfer/cache.h"

struct move;
struct fetch {
        struct fetch *next, **link;
        struct fetch *waiting, **waiting_link; /* list of the owner's fetches that wait for their turn; NULL:
                                                  the fetch has begun */
        char *id;                              /* key under which it is found until it ends */
        char *owner;                           /* owner in whose share of concurrent fetches it counts */
        struct agent *a;
        struct waiter *waiters;
        bool shipped, ended;
        int64_t began_ms; /* Unix */
        bool summed;      /* sha256 is the required checksum */
        unsigned char sha256[32];
        char part[32]; /* temporary file of the cache; "": none yet */
        int fd;
        struct cached *held; /* pinned contents that are being verified, or may be unchanged at the URL */
        struct move *move;
        /* shipped files */
        char *name;                     /* name that the first attempt uses for the file */
        uint64_t request, offset, size; /* request: the request whose file is asked from the server; it waits
                                           for the fetch, or did */
        unsigned refused; /* number of requests for which the server has refused the file since it last sent a
                             part */
        void *sum;
        int64_t began_ns;
        /* files at URLs */
        char *url, *key;
        char *user;                 /* local user whose mover fetches it; NULL: the agent's own mover */
        struct move_answer *claims; /* with `user`: unverified answer of that user's mover, while the file is
                                       copied; else NULL */
        uint64_t shown;             /* version of the credential that the transfer uses; 0: none */
        size_t store, way;          /* way: index of the URL variant in use; 0: as the job named it */
        bool made_room;
        char *first_error;
        bool silence, spoken; /* among the variants that failed: one did not answer, one gave a reason */
        bool doubts; /* the fetch failed, and the store is being probed to find out whether it answers */
        int error;   /* errno of the failure, with `doubts` */
        const char *silent_store; /* name of the silent store that ends the fetch; borrowed */
};

/* Ends and frees the fetch and tells the attempts that wait. contents: the result, in the cache; NULL:
 * failure with `error` and `why`. */
void fetch_end(struct fetch *f, struct cached *contents, int error, const char *why);
struct fetch *fetch_find_shipped(const struct agent *a, const unsigned char sha256[32]);
struct fetch *fetch_first(const struct agent *a);
struct attempt *fetch_for(
        const struct fetch *f); /* an attempt that waits for it; never NULL before the end */
/* For a shipped file: chooses another waiting request to ask the server with. Returns false if the server
 * has refused all of them. */
bool fetch_for_another(struct fetch *f);
void fetch_get(struct fetch *f); /* fetches from the origin, without asking the cache */
void fetch_url(struct fetch *f); /* fetches from the URL; in fetch_url.c */
/* Ends the fetches that wait to know whether this store answers. */
void fetch_store_known(struct agent *a, size_t store, bool answers);
void fetch_stores_changed(struct agent *a);
/* Ends and frees a fetch whose store does not answer. The attempts that wait for it go back to the server's
 * queue. */
void fetch_end_silent(struct fetch *f);
