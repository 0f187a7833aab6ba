/* link: the connection to the other server, and calls to it. */
#pragma once
#include "base/str.h"
#include "base/system/uuid.h"
#include "ev/http_client.h"

struct remote;

#define REMOTE_RETRY_MS 250 /* delay after a call without an answer; it grows with each failure */

struct remote_link {     /* written by link.c and hello.c */
        bool up;         /* the other server answers */
        int64_t down_ms; /* boot clock; since when it does not */
        bool listed;     /* the queue has been reported as ready */
        bool refused;    /* it does not know this user */
        char *why;       /* reason reported for its being unreachable; NULL: reachable, or nothing reported */
        int64_t retry_ms;
        size_t at; /* index of the server that is asked, in `addresses` */
        struct timer *hello;
        char server[UUID_TEXT], you[256];
};

/* Makes a call with a timeout of one minute. Borrows path and body until it returns; fn is called with f.
 * The call ends by itself, or earlier by http_call_cancel(). */
struct http_call *remote_ask(struct remote *f, const char *method, struct buf *path, struct str body,
                             http_call_fn *fn);
/* GET with no body. It ends earlier if there is another server to ask. */
struct http_call *remote_get(struct remote *f, const char *path, http_call_fn *fn);

/* Handles a call without an answer: polls end, the queue and its jobs are told why, and the first call is
 * made again. */
void remote_unreachable(struct remote *f, const char *why);
/* Reports the reason to the queue and its jobs, once for the same words. */
void remote_tell_unreachable(struct remote *f, const char *what, const char *why);
/* Asks the next one of several servers from now on. Calls under way end without an answer. */
void remote_ask_next(struct remote *f);
/* Repeats the first call, after a longer delay than the last time. `answered`: there was an answer, but it
 * is unusable. */
void remote_retry(struct remote *f, bool answered, const char *why);
