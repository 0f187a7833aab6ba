#include "server/calls/call.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/system/clock.h"
#include "server/calls/body.h"
#include "server/calls/fair.h"
#include "server/calls/route.h"
#include "server/metrics/metrics.h"

/* a chunked reply pauses while the client has more bytes than this to read */
#define PENDING_MAX (1u << 20)
#define BUSY        "too many large requests of yours are on their way at once: send this one later"

void *call_state(struct call *c, size_t size, void (*state_free)(void *state))
{
        c->state = mem_zalloc(size);
        c->state_free = state_free;
        return c->state;
}

void call_state_drop(struct call *c)
{
        if (c->state && c->state_free)
                c->state_free(c->state);
        else
                free(c->state);
        c->state = NULL;
        c->state_free = NULL;
}

void call_free(struct call *c)
{
        call_state_drop(c);
        if (c->front)
                c->front->free(c->front);
        free(c->path);
        free(c->who);
        arena_deinit(&c->arena);
        buf_deinit(&c->out);
        free(c);
}

static void unanswered(void *arg, struct http_request *r)
{
        (void)arg;
        (void)r;
}

/* The server is closing. The request is freed with its connection. */
static void drop_call(struct task *t)
{
        struct call *c = (struct call *)t;

        if (c->http)
                http_on_close(c->http, unanswered, NULL);
        call_free(c);
}

static void run_call(struct server *s, struct task *t)
{
        struct call *c = (struct call *)t;
        struct fair_user *turn_of = c->turn_of;

        c->turn_of = NULL;
        if (c->place == CALL_IO && !c->http)
                call_free(c);
        else
                c->step(s, c);
        if (turn_of)
                fair_done(turn_of);
}

static void prepare_step(struct call *c, enum call_place place, call_fn *fn)
{
        c->place = place;
        c->step = fn;
        c->task.run = run_call;
        c->task.drop = drop_call;
}

void call_core(struct call *c, call_fn *fn)
{
        prepare_step(c, CALL_CORE, fn);
        server_to_core_priority(c->server, &c->task);
}

void call_reader(struct call *c, call_fn *fn)
{
        prepare_step(c, CALL_READER, fn);
        fair_post(c->server->reader_fair, c);
}

void call_catalog(struct call *c, call_fn *fn)
{
        prepare_step(c, CALL_CATALOG, fn);
        fair_post(c->server->catalog_fair, c);
}

void call_io(struct call *c, call_fn *fn)
{
        enum call_place from = c->place;

        prepare_step(c, CALL_IO, fn);
        if (from == CALL_CORE)
                turn_reply(c->server->turn, &c->task, c->when);
        else if (from != CALL_IO)
                server_to_io_priority(c->server, &c->task);
        else
                run_call(c->server, &c->task);
}

void call_yield(struct call *c, call_fn *fn)
{
        prepare_step(c, CALL_CORE, fn);
        fair_post(c->server->core_fair, c);
}

static void go_on(struct server *s, struct call *c)
{
        (void)s;
        call_yield(c, c->more);
}

void call_yield_to_client(struct call *c, call_fn *fn)
{
        c->more = fn;
        call_io(c, go_on);
}

/* Counts the call in the metrics, before its connection is given back. */
static void count_call(const struct call *c)
{
        metrics_call(c->server->metrics, c->route ? http_method_name(c->route->method) : METRICS_OTHER,
                     c->route ? c->route->path : METRICS_OTHER, c->status, clock_mono_ns() - c->begun_ns);
}

/* A reply that waits to be translated counts for its caller, like a body; one in chunks counts from its first
 * one for all that it might become, until here. */
static void front_reply(struct server *s, struct call *c)
{
        size_t surplus = c->chunked && c->out.n < CALL_FRONT_REPLY_MAX ? CALL_FRONT_REPLY_MAX - c->out.n : 0;

        c->front->replied = true;
        c->front->counted += c->chunked ? 0 : c->out.n;
        c->front->counted -= surplus;
        http_body_shrink(c->http, surplus);
        if (!c->chunked && !http_body_grow(c->http, c->out.n)) {
                c->status = 503;
                c->code = "busy";
                err_set(&c->err, 0, BUSY);
        }
        c->front->reply(s, c);
}

static void send_reply(struct server *s, struct call *c)
{
        struct http_request *r = c->http;

        if (c->front && !c->front->replied) {
                front_reply(s, c);
                return;
        }
        c->http = NULL;
        http_on_close(r, NULL, NULL);
        count_call(c);
        http_reply(r, c->status, c->content_type, &c->out);
        call_free(c);
}

void call_end(struct call *c)
{
        struct http_request *r = c->http;

        c->http = NULL;
        count_call(c);
        http_on_close(r, NULL, NULL);
        http_reply_end(r);
        call_free(c);
}

static void drained(void *arg, struct http_request *r)
{
        struct call *c = arg;

        (void)r;
        if (!c->waits)
                return; /* the next chunk is under way */
        c->waits = false;
        call_yield(c, c->more);
}

void call_chunk(struct call *c, bool last, call_fn *more)
{
        if (last && (!c->chunked || c->front)) {
                call_reply(c);
                return;
        }
        if (c->front) {
                bool counted = c->chunked || http_body_grow(c->http, CALL_FRONT_REPLY_MAX);

                c->front->counted += c->chunked || !counted ? 0 : CALL_FRONT_REPLY_MAX;
                c->chunked = counted;
                if (!counted)
                        call_fail(c, 503, "busy", BUSY);
                else if (c->out.n > CALL_FRONT_REPLY_MAX)
                        call_fail(c, 413, "too_large", "the answer is larger than %u MiB: ask for less",
                                  CALL_FRONT_REPLY_MAX >> 20);
                else
                        call_yield(c, more);
                return;
        }
        if (!c->chunked)
                http_reply_start(c->http, c->status, NULL, drained, c);
        c->chunked = true;
        c->more = more;
        http_reply_chunk(c->http, &c->out);
        if (last)
                call_end(c);
        else if (http_reply_pending(c->http) < PENDING_MAX)
                call_yield(c, more);
        else {
                buf_deinit(&c->out); /* its memory is not kept while the client reads */
                c->waits = true;     /* until the connection has sent its buffer */
        }
}

static void send_error(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};

        buf_reset(&c->out);
        json_open(&j, '{');
        json_key(&j, "error");
        json_open(&j, '{');
        json_kstrz(&j, "code", c->code);
        json_kstrz(&j, "message", c->err.text);
        json_close(&j, '}');
        json_close(&j, '}');
        send_reply(s, c);
}

void call_reply(struct call *c)
{
        call_io(c, send_reply);
}

void call_fail(struct call *c, int status, const char *code, const char *fmt, ...)
{
        va_list ap;

        c->status = status;
        c->code = code;
        va_start(ap, fmt);
        err_vset(&c->err, 0, fmt, ap);
        va_end(ap);
        call_io(c, send_error);
}

void call_fail_err(struct call *c, int status, const char *code, const struct err *err)
{
        call_fail(c, status, code, "%s", err->text);
}

/* Gives the value of a query parameter, as http_query does. */
static bool query(struct call *c, const char *name, struct str *ret)
{
        if (!c->front)
                return http_query(c->http, name, ret);
        for (unsigned i = 0; i < CALL_FRONT_QUERY_MAX && c->front->query[i].name; i++)
                if (strcmp(c->front->query[i].name, name) == 0) {
                        *ret = c->front->query[i].value;
                        return true;
                }
        return false;
}

static struct str body_of(const struct call *c)
{
        return c->front ? c->front->body : http_body(c->http);
}

bool call_is_text(const struct call *c)
{
        struct str type = http_header(c->http, "Content-Type");

        return !c->front && (str_istarts(type, STR("text/plain")) || str_istarts(type, STR("text/xml")) ||
                             str_istarts(type, STR("application/xml")));
}

bool call_number(struct call *c, const char *name, uint64_t max, uint64_t *ret)
{
        struct str text;
        uint64_t v;

        if (!query(c, name, &text))
                return true;
        if (str_to_u64(text, &v) != 0 || v > max) {
                call_fail(c, 400, "bad_parameter", "'%s' must be a number from 0 to %llu", name,
                          (unsigned long long)max);
                return false;
        }
        *ret = v;
        return true;
}

struct str call_query(struct call *c, const char *name)
{
        struct str text;

        if (!query(c, name, &text))
                return STR_NONE;
        return arena_str(&c->arena, text);
}

bool call_flag(struct call *c, const char *name)
{
        struct str text;

        return query(c, name, &text) && !str_eqz(text, "0") && !str_eqz(text, "false");
}

/* ---- size of a document in jansson's memory */
#define OBJECT_BYTES 256u /* of an object or a list */
#define VALUE_BYTES  128u /* of a value in it, and its key */
#define PARSED_MAX   (96u << 20)
#define SMALL_MAX    65536u /* bodies up to this size are not measured */

/* Returns whether the parsed document is small even if every letter opens an object. Most documents are,
 * and this test reads sixteen bytes at a time. */
static bool is_small(struct str body)
{
        size_t most = body.n + 16 * OBJECT_BYTES; /* counts the last, incomplete block as objects */

        for (; body.n >= 16 && most < SMALL_MAX; body = str_skip(body, 16)) {
                unsigned char some_objects = 0, some_values = 0;

                for (unsigned i = 0; i < 16; i++) {
                        some_objects += (body.p[i] | 32) == '{'; /* '{' or '[' */
                        some_values += body.p[i] == ',';
                }
                most += some_objects * OBJECT_BYTES + some_values * VALUE_BYTES;
        }
        return most < SMALL_MAX;
}

/* Returns an upper bound of the bytes that the parsed document takes: a few letters may become an object. */
static size_t parsed_size(struct str body)
{
        size_t objects = 0, values = 0;
        bool text = false;

        for (size_t i = 0; i < body.n; i++)
                switch (body.p[i]) {
                case '"': text = !text; break;
                case '\\': i += text; break;
                case '{':
                case '[': objects += !text; break;
                case ',': values += !text; break;
                default: break;
                }
        return body.n + objects * OBJECT_BYTES + values * VALUE_BYTES;
}

/* Returns false if the body needs more memory than a body may have or than is left; the call has then
 * failed. */
static bool body_fits(struct call *c)
{
        size_t size = is_small(body_of(c)) ? 0 : parsed_size(body_of(c));

        if (size > PARSED_MAX)
                call_fail(c, 413, "too_large",
                          "the body has too many values: they would take %zu MiB, and may take %u",
                          size >> 20, PARSED_MAX >> 20);
        else if (size >= SMALL_MAX && !http_body_grow(c->http, size))
                call_fail(c, 503, "busy", BUSY);
        else
                return true;
        return false;
}

bool call_body(struct call *c, struct buf *ret)
{
        if (!body_fits(c))
                return false;
        buf_str(ret, body_of(c));
        return true;
}

json_t *call_json(struct call *c)
{
        return body_fits(c) ? call_json_of(c, body_of(c)) : NULL;
}

json_t *call_json_of(struct call *c, struct str body)
{
        json_error_t e;
        json_t *doc = json_loadb(body.p ? body.p : "", body.n, JSON_REJECT_DUPLICATES, &e);
        struct err err;

        if (doc && !json_is_object(doc)) {
                json_decref(doc);
                call_fail(c, 400, "bad_json", "the body must be a JSON object");
        } else if (doc && body_check(c->bodies, c->route, doc, &err) != 0) {
                json_decref(doc);
                call_fail_err(c, 400, "bad_type", &err);
        } else if (doc) {
                return doc;
        } else {
                call_fail(c, 400, "bad_json", "the body is not JSON: line %d, column %d: %s", e.line,
                          e.column, e.text);
        }
        return NULL;
}

/* Where this thread's JSON values are allocated; NULL: by malloc. */
static _Thread_local struct arena *json_arena;

static void *json_allocate(size_t n)
{
        return json_arena ? arena_alloc(json_arena, n) : malloc(n);
}

static void json_release(void *p)
{
        if (!json_arena)
                free(p);
}

/* Before any thread uses jansson. */
static void __attribute__((constructor)) set_json_allocation(void)
{
        json_set_alloc_funcs(json_allocate, json_release);
}

json_t *call_json_in(struct call *c, struct str body, struct arena *arena)
{
        json_t *doc;

        json_arena = arena;
        doc = call_json_of(c, body);
        json_arena = NULL;
        return doc;
}

struct str call_json_text(const json_t *object, const char *key)
{
        const json_t *v = json_object_get(object, key);

        return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR_NONE;
}

bool call_may(const struct call *c, struct str owner)
{
        return c->role != ROLE_USER || str_eqz(owner, c->who);
}

bool call_may_run_as(const struct call *c, struct str owner)
{
        return c->role == ROLE_ADMIN || str_eqz(owner, c->who);
}

bool call_owner_is(struct str owner, struct str wanted)
{
        ptrdiff_t at = str_rfind(owner, '@');

        return wanted.n == 0 || str_eq(owner, wanted) ||
               (at >= 0 && str_eq(str_head(owner, (size_t)at), wanted));
}
