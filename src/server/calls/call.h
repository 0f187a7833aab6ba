/* call: one API request on its way through the threads.
 *
 * A call begins on the I/O thread in its route's start function. It goes from step to step with call_core,
 * call_reader, call_catalog and call_io, each of which names the function that runs next on that thread,
 * and it ends with a reply on the I/O thread. A step owns the call while it runs; after passing the call
 * on it must not touch it. Errors end in call_fail, from any thread. When the client disconnects, the call
 * continues to its next step on the I/O thread and ends there.
 *
 * Results are plain structs in the call's arena, written as JSON on the I/O thread. Small documents that
 * are made of ads are written into `out` by the core thread, which owns the ads. */
#pragma once
#include "auth/principal.h"
#include "base/arena.h"
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

/* A request in another form than the API's own, translated to a call of a route. The translation stands in
 * for the request's query, body and content type, and `reply` makes the answer: it finds the route's
 * complete reply in c->out, c->status, and c->code and c->err of a call that has failed. That reply counts
 * for the caller like a body; without room for it the call fails (http_body_grow). Owned by its maker, which
 * frees it when the call is freed. */
#define CALL_FRONT_QUERY_MAX 4u
#define CALL_FRONT_REPLY_MAX (8u << 20) /* bytes of a reply that is made in chunks */
struct call_front {
        struct {
                const char *name;
                struct str value;
        } query[CALL_FRONT_QUERY_MAX]; /* up to one without a name */
        struct str body;
        call_fn *reply; /* I/O thread; it ends with call_reply, which then sends c->out */
        bool replied;
        size_t counted; /* bytes for which the replies count so far */
        void (*free)(struct call_front *f);
};

struct call {
        struct task task;
        struct server *server;
        const struct route *route;
        const struct bodies *bodies; /* the body types of all routes */
        struct http_request *http;   /* I/O thread only */
        enum call_place place;
        /* when the next step from the core to the I/O thread runs; TURN_READ at first */
        enum turn_when when;
        call_fn *step;
        /* for the client. I/O thread only, because it is read while another thread owns the call */
        bool waits;
        char *path;
        struct str param[2]; /* the {…} parts of the path */
        char *who;           /* principal of the caller */
        /* the user's entry in fair.h while this step holds a turn; NULL: the step needs no turn */
        struct fair_user *turn_of;
        struct call *next_turn;
        enum role role;
        int64_t token_until_ms; /* when the token that authenticated the call expires; 0: no token did */
        struct arena arena;
        struct buf out;           /* the reply's body, or its next chunk */
        bool chunked;             /* a chunk was sent */
        call_fn *more;            /* makes the next chunk; core thread */
        int64_t begun_ns;         /* steady clock: when the request's head was received */
        const char *content_type; /* of the reply; a constant; NULL: JSON */
        int status;               /* 200 at first */
        const char *code;         /* error code of a call that has failed */
        struct err err;
        struct call_front *front; /* NULL: the request is in the API's form */
        void *state;              /* owned by the route */
        void (*state_free)(void *state);
};

/* Allocates c->state, zeroed. state_free NULL: free() frees it. */
void *call_state(struct call *c, size_t size, void (*state_free)(void *state));

void call_core(struct call *c, call_fn *fn); /* from the I/O thread or the reader */
/* call_reader: from the I/O or core thread. call_catalog: from the I/O thread. The steps of one user's
 * calls take turns with those of other users (fair.h). */
void call_reader(struct call *c, call_fn *fn);
void call_catalog(struct call *c, call_fn *fn);
void call_io(struct call *c, call_fn *fn); /* from any other thread */
/* Core thread: continues sliced work with fn in the next turn, after other work that has arrived meanwhile
 * and in turn with other users' slices (fair.h). May also start such work from the I/O thread. call_yield
 * continues even if the client has disconnected; call_yield_to_client ends with the client. */
void call_yield(struct call *c, call_fn *fn);
void call_yield_to_client(struct call *c, call_fn *fn);
/* Sends c->out as the reply. From the I/O thread, or from a step whose next thread is the I/O thread. */
void call_reply(struct call *c);
void call_fail(struct call *c, int status, const char *code, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
void call_fail_err(struct call *c, int status, const char *code, const struct err *err);
/* I/O thread: sends `out` as a chunk of a reply that may be long. The last chunk ends the call. After any
 * other chunk `more` runs on the core thread: at once, or when the client has read enough of the earlier
 * chunks. */
void call_chunk(struct call *c, bool last, call_fn *more);
/* I/O thread: ends a chunked reply. */
void call_end(struct call *c);
/* Frees the call. I/O thread, after the reply or when the client has disconnected; or any thread when its
 * thread has ended */
void call_free(struct call *c);
/* Any thread that owns the call: frees the route's state, for a call that goes on with another route. */
void call_state_drop(struct call *c);

/* I/O thread: a query parameter that is a number. An invalid number ends the call with 400 and returns
 * false; an absent one leaves *ret unchanged. */
bool call_number(struct call *c, const char *name, uint64_t max, uint64_t *ret);
struct str call_query(struct call *c, const char *name); /* empty when absent; lives with the call */
bool call_flag(struct call *c, const char *name);        /* present and not "0" or "false" */
bool call_is_text(const struct call *c);                 /* the body is text/plain */
/* I/O thread: returns the body as a JSON object, checked against the route's types (body.h). NULL: the
 * body is invalid and the call has ended. The caller owns the object. */
json_t *call_json(struct call *c);
/* The same in two steps, for large bodies. call_body copies the body; false: the call has ended.
 * call_json_of parses and checks the copy on any thread; NULL: the call has ended. */
bool call_body(struct call *c, struct buf *ret);
json_t *call_json_of(struct call *c, struct str body);
/* The same; all of the object is in the arena. It is never freed on its own, and json_decref must not be
 * called for it. For bodies of many small values, of which malloc and free take most of the time. */
json_t *call_json_in(struct call *c, struct str body, struct arena *arena);
/* empty when the member is absent or not text */
struct str call_json_text(const json_t *object, const char *key);

/* Returns whether the caller may see and act on the jobs of `owner`. */
bool call_may(const struct call *c, struct str owner);
/* Returns whether the caller may run programs as `owner`: the owner and admins may. An operator may hold
 * and remove other users' jobs, and must not gain the owner's rights. */
bool call_may_run_as(const struct call *c, struct str owner);
/* Returns whether `owner` matches `wanted`, which is name or name@domain; an empty name matches everybody. */
bool call_owner_is(struct str owner, struct str wanted);
