/* call: one API request on its way through the threads.
 *
 * It begins on the I/O thread in its route's start function, goes from step to step with call_core,
 * call_reader, call_catalog and call_io, each naming the function that runs next on that thread, and ends
 * with a reply on the I/O thread. A step owns the call while it runs; after passing it on it must not touch
 * it. Anything that fails ends in call_fail, from any thread. When the client goes away the call goes on to
 * its next step on the I/O thread and ends there.
 *
 * Results are plain structs in the call's arena, written as JSON on the I/O thread. Small documents that are
 * made of ads are written by the core thread, which owns the ads, into `out`.
 */
#pragma once
#include "auth/principal.h"
#include "base/format/json.h"
#include "base/format/json_read.h"
#include "ev/http.h"
#include "server/loop/server.h"
#include "server/loop/turn.h"

enum call_place { CALL_IO, CALL_CORE, CALL_READER, CALL_CATALOG };

struct route;
struct fair_user;
struct call;
typedef void call_fn(struct server *s, struct call *c);

struct call {
        struct task task;
        struct server *server;
        const struct route *route;
        const struct bodies *bodies; /* the types of what bodies say, of all routes */
        struct http_request *http;   /* I/O thread only */
        enum call_place place;
        enum turn_when when; /* how the next step from core to I/O thread leaves; TURN_READ at first */
        call_fn *step;
        bool waits; /* for the client; I/O thread only, as this is asked while the call is elsewhere */
        char *path;
        struct str param[2];       /* the path's {…} parts */
        char *who;                 /* principal */
        struct fair_user *turn_of; /* fair.h; NULL: this step takes no turn */
        struct call *next_turn;
        enum role role;
        int64_t token_until_ms; /* of the token that said so; 0: none did */
        struct arena arena;
        struct buf out;           /* the reply's body, or its next part */
        bool chunked;             /* a part of it was sent */
        call_fn *more;            /* makes the next part, or goes on, on the core thread */
        int64_t begun_ns;         /* steady: when its head was there */
        const char *content_type; /* of the reply; a constant; NULL: JSON */
        int status;               /* 200 at first */
        const char *code;         /* failed: of the error */
        struct err err;
        void *state; /* the route's own */
        void (*state_free)(void *state);
};

/* NULL state_free: free(). */
void *call_state(struct call *c, size_t size, void (*state_free)(void *state));

void call_core(struct call *c, call_fn *fn); /* from I/O thread or reader */
/* From I/O thread or core, and from I/O thread: steps of one user's calls there take turns with others'
 * (fair.h). */
void call_reader(struct call *c, call_fn *fn);
void call_catalog(struct call *c, call_fn *fn);
void call_io(struct call *c, call_fn *fn); /* from any other thread */
/* Core: work that is done in slices goes on with fn, here, in the next turn, behind what has come in
 * meanwhile, and in turn with others' slices (fair.h); or begins so, from the I/O thread. The first goes on
 * to its end; the second ends with the client. */
void call_yield(struct call *c, call_fn *fn);
void call_yield_to_client(struct call *c, call_fn *fn);
/* Replies with c->out (on the I/O thread, or on the way there). */
void call_reply(struct call *c);
void call_fail(struct call *c, int status, const char *code, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
void call_fail_err(struct call *c, int status, const char *code, const struct err *err);
/* I/O thread: sends `out` as a part of a reply that may be long. The last one ends the call; after another
 * one `more` runs on the core thread, at once, or when the client has taken enough of what was sent before.
 */
void call_chunk(struct call *c, bool last, call_fn *more);
/* I/O thread: ends a reply that was sent in chunks. */
void call_end(struct call *c);
void call_free(
        struct call *c); /* I/O thread, once the reply is done or the client gone; or when a thread ended */

/* I/O thread: query parameters. A bad number ends the call with 400 and is false; an absent one leaves *ret.
 */
bool call_number(struct call *c, const char *name, uint64_t max, uint64_t *ret);
struct str call_query(struct call *c, const char *name); /* empty when absent; lives with the call */
bool call_flag(struct call *c, const char *name);        /* present and not "0" or "false" */
/* I/O thread: the body as a JSON object of the types that the route takes (body.h), or NULL and the call has
 * ended. The caller owns it. */
json_t *call_json(struct call *c);
/* The same in two steps, for a body that is large: a copy of it, false: the call has ended; and, on any
 * thread, its object, or NULL, and the call has ended. */
bool call_body(struct call *c, struct buf *ret);
json_t *call_json_of(struct call *c, struct str body);
struct str call_json_text(const json_t *object, const char *key); /* empty when absent or not text */

/* Whether the caller may see and act on what `owner` has. */
bool call_may(const struct call *c, struct str owner);
/* Whether programs may run as `owner` by the caller's word: himself, or an admin. An operator may hold and
 * remove what others have, and gets nothing that he could do as them. */
bool call_may_run_as(const struct call *c, struct str owner);
/* Whether `owner` is whom `wanted` names, as name or name@domain; an empty name is anybody. */
bool call_owner_is(struct str owner, struct str wanted);
