/* fetch: one thing on its way into the cache, for the attempts that wait for it. inputs.c makes and ends it;
 * spool.c brings what was shipped with a submit, fetch_url.c what is at URLs. */
#pragma once
#include "agent/model/attempt.h"
#include "agent/transfer/cache.h"

struct move;
struct fetch {
        struct fetch *next, **link;
        struct fetch *waiting, **waiting_link; /* among those of its owner that wait for their turn; NULL: it
                                                  has had that */
        char *id;                              /* what it is found by, until it has ended */
        char *owner;                           /* whose share of what goes at a time it takes */
        struct agent *a;
        struct waiter *waiters;
        bool shipped, ended;
        int64_t began_ms; /* Unix */
        bool summed;      /* sha256 is what it must have */
        unsigned char sha256[32];
        char part[32]; /* the file that it is written into; "": none yet */
        int fd;
        struct cached *held; /* pinned meanwhile: being checked, or perhaps unchanged */
        struct move *move;
        /* shipped */
        char *name; /* of the file, as who asked first calls it */
        uint64_t request, offset,
                size;     /* request: one that waits for it, or did; the server is asked for it */
        unsigned refused; /* requests for which the server has refused it since it last gave any */
        void *sum;
        int64_t began_ns;
        /* of a URL */
        char *url, *key;
        char *user; /* whose mover fetches it; NULL: the agent's own does */
        struct move_answer
                *claims;   /* with `user`: what his mover says of it, while it is copied; else NULL */
        uint64_t shown;    /* version of the credential that the move has; 0: none */
        size_t store, way; /* the way it is tried now; 0: as it was named */
        bool made_room;
        char *first_error;
        bool silence, spoken;     /* of the ways that failed: one was silent, one said why */
        bool doubts;              /* it has failed; whether its store is there at all is being asked */
        int error;                /* with doubts */
        const char *silent_store; /* it ends for this; borrowed */
};

/* It is in the cache, or (contents NULL) why not. Frees it. */
void fetch_end(struct fetch *f, struct cached *contents, int error, const char *why);
struct fetch *fetch_find_shipped(const struct agent *a, const unsigned char sha256[32]);
struct fetch *fetch_first(const struct agent *a);
struct attempt *fetch_for(const struct fetch *f); /* one that waits for it; there is one until it ends */
/* For a shipped file: another request that waits for the file is the one to ask for. False: there is none
 * that the server has not refused. */
bool fetch_for_another(struct fetch *f);
void fetch_get(struct fetch *f); /* from where it is, whatever the cache has */
void fetch_url(struct fetch *f); /* fetch_url.c: from its URL */
/* Ends those that asked whether this store is there. Stores may have other numbers, or none. */
void fetch_store_known(struct agent *a, size_t store, bool answers);
void fetch_stores_changed(struct agent *a);
/* It is not in the cache since its store does not answer: who waits for it is given back. Frees it. */
void fetch_end_silent(struct fetch *f);
