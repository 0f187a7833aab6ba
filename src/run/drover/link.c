/* In touch with the far server, or not:
 *
 *   away --GET /v1/server--> up: whatever we have there is looked at --all of it--> READY is told
 *    ^                                                                                  |
 *    +---------- a call has no answer: RUN_AWAY is told, tasks are kept ----------------+
 *
 * While we are in touch one long poll of the far log says what happens to all tasks; room and paths are asked
 * for now and then. Leases, and what drover_acts.c has to send, go out one call after the other. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/u64.h"
#include "run/batch/batch.h"
#include "run/drover/private.h"

#define TICK_MS        1000
#define FEED_MS        30000
#define ROOM_MS        5000
#define PATHS_MS       2000
#define RETRY_FIRST_MS 250
#define RETRY_MAX_MS   10000
#define RETRY_TELL_MS  1000
#define LEASE_MS       600000  /* when the agent has none */
#define VALUES_MAX     1000000 /* of an answer that is read */
#define QUICK_MS       1000    /* a long poll that tells nothing sooner is asked again with the next tick */
#define HOPS_BYTES     65536   /* of a job's path */
#define WORDS_BYTES    4096    /* of an answer's sentence */
#define CPUS_MAX       100000000u
#define MIB_MAX        (UINT64_C(1) << 40)

static void ask_feed(struct far *f);
static void tick(void *arg);

/* Each value takes some hundred bytes when it is read. */
json_t *far_json(struct str body)
{
        if (batch_json_values(body) > VALUES_MAX)
                return NULL;
        return json_loadb(body.p ? body.p : "", body.n, 0, NULL);
}

void far_words(struct buf *out, struct str words)
{
        size_t from = out->n;
        words = str_head(words, WORDS_BYTES);
        for (size_t i = 0; i < words.n; i++)
                buf_char(out, (unsigned char)words.p[i] < ' ' ? ' ' : words.p[i]);
        batch_make_utf8(str_skip(buf_view(out), from));
}

void far_error(struct buf *out, int status, struct str body)
{
        json_t *doc = far_json(body);
        const char *message = json_string_value(json_object_get(json_object_get(doc, "error"), "message"));
        if (message)
                far_words(out, str_of(message));
        else
                buf_printf(out, "the other server answered with status %d", status);
        json_decref(doc);
}

struct http_call *far_ask(struct far *f, const char *method, struct buf *path, struct str body,
                          http_call_fn *fn)
{
        const struct http_call_spec spec = {
                .method = method, .path = buf_z(path), .body = body, .timeout_ms = FEED_MS * 2};
        return http_client_call(f->client, &spec, fn, f);
}

static struct http_call *get(struct far *f, const char *path, http_call_fn *fn)
{
        BUF_CLEANUP struct buf b = {0};
        buf_addz(&b, path);
        return far_ask(f, "GET", &b, STR(""), fn);
}

/* ---- there, or not */

/* People see it at the queue and at its jobs; not told twice. */
static void tell_away(struct far *f, const char *what, const char *why)
{
        BUF_CLEANUP struct buf text = {.max = 512};
        buf_printf(&text, "the other server, %.100s, %s: %.300s", f->address, what, why);
        if (f->why && !strcmp(f->why, buf_z(&text)))
                return;
        free(f->why);
        f->why = mem_dupz(buf_z(&text));
        far_tell_runner(f, RUN_AWAY, f->why);
}

void far_away(struct far *f, const char *why)
{
        if (!f->up)
                return;
        f->up = false;
        log_warn("msg=\"the other server does not answer\" queue=%s server=%s why=\"%s\"", f->queue,
                 f->address, LOG_TEXT(str_of(why)));
        http_call_cancel(f->feed);
        http_call_cancel(f->room);
        http_call_cancel(f->paths);
        f->feed = f->room = f->paths = NULL;
        f->capacity.known = false;
        tell_away(f, "does not answer", why);
        f->listed = false;
        f->retry_ms = RETRY_FIRST_MS;
        timer_start(f->hello, f->retry_ms);
}

static void list_all(struct far *f)
{
        if (!f->up || f->listed || f->unsettled)
                return;
        f->listed = true;
        for (struct far_task *t = f->all; t; t = t->next)
                far_tell(f, t, true);
        free(f->why);
        f->why = NULL;
        far_tell_runner(f, RUN_READY, NULL);
}

void far_settled(struct far_task *t)
{
        if (!t->unsettled)
                return;
        t->unsettled = false;
        t->far->unsettled--;
        list_all(t->far);
}

static void again(struct far *f, bool answered, const char *why)
{
        if (f->retry_ms >= RETRY_TELL_MS)
                tell_away(f, !answered && *f->server ? "does not answer" : "cannot be used", why);
        if (f->retry_ms >= RETRY_MAX_MS / 2 && f->retry_ms < RETRY_MAX_MS)
                log_warn("msg=\"the other server cannot be used\" queue=%s server=%s why=\"%s\"", f->queue,
                         f->address, LOG_TEXT(str_of(why)));
        f->retry_ms = f->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : f->retry_ms * 2;
        timer_start(f->hello, f->retry_ms);
}

static void there(struct far *f, const json_t *doc)
{
        log_info("msg=\"in touch with the other server\" queue=%s server=%s as=%s", f->queue, f->server,
                 f->you);
        f->up = true;
        f->retry_ms = RETRY_FIRST_MS;
        f->cursor = (uint64_t)json_integer_value(json_object_get(doc, "seq"));
        f->paths_at = 0;
        f->room_ms = f->paths_ms = 0;
        f->unsettled = 0;
        for (struct far_task *t = f->all; t; t = t->next) {
                t->unsettled = t->state == FAR_KEPT || t->state == FAR_IN;
                t->dirty = t->state == FAR_IN;
                f->unsettled += t->unsettled;
                if (t->dirty && t->killing) /* whatever became of it when it was said */
                        far_act(t, FAR_REMOVE);
        }
        ask_feed(f);
        tick(f);
        list_all(f);
}

/* Both stand in logs, and the one in paths of jobs. */
static bool is_server(const char *uuid, const char *you)
{
        size_t n = uuid && you ? strlen(uuid) : 0, all = n ? strlen(you) : 0;
        for (size_t i = 0; i < all; i++)
                if ((unsigned char)you[i] <= ' ' || you[i] == 127)
                        return false;
        return n == FAR_UUID - 1 && strspn(uuid, "0123456789abcdefABCDEF-") == n && all > 0 && all < 256;
}

static void on_hello(void *arg, int status, struct str body, const struct err *err)
{
        struct far *f = arg;
        BUF_CLEANUP struct buf why = {0};
        json_t *doc = status == 200 ? far_json(body) : NULL;
        const char *uuid = json_string_value(json_object_get(doc, "uuid"));
        const char *you = json_string_value(json_object_get(doc, "you"));
        if (status && status != 200)
                far_error(&why, status, body);
        else
                buf_addz(&why, status ? "it is no Drover server" : err->text);
        if (is_server(uuid, you)) {
                snprintf(f->server, sizeof(f->server), "%s", uuid);
                snprintf(f->you, sizeof(f->you), "%s", you);
                f->refused = false;
                there(f, doc);
        } else if (f->user && status / 100 == 4) {
                far_refused(f, buf_z(&why));
        } else {
                again(f, status, buf_z(&why));
        }
        json_decref(doc);
}

void far_hello(struct far *f)
{
        get(f, "/v1/server", on_hello);
}

void far_refused(struct far *f, const char *why)
{
        f->refused = true;
        for (struct far_task *t = f->all, *next; t; t = next) {
                next = t->next;
                if (t->state == FAR_FRESH || t->state == FAR_READY)
                        far_fail(t, "credential", EACCES, why);
        }
        tell_away(f, "refuses", why);
        again(f, true, why);
}

static void hello(void *arg)
{
        struct far *f = arg;
        if (f->user) {
                far_token(f);
                return;
        }
        BUF_CLEANUP struct buf token = {0};
        if (f->token_file && fs_read_secret(AT_FDCWD, f->token_file, 4096, &token, NULL) == 0) {
                MEM_CLEANUP char *z = str_dupz(str_trim(buf_view(&token)));
                http_client_bearer(f->client, z);
        }
        far_hello(f);
}

void far_link_open(struct far *f)
{
        f->retry_ms = RETRY_FIRST_MS;
        f->hello = timer_new(f->loop, hello, f);
        f->tick = timer_new(f->loop, tick, f);
        f->lease_given_ms = far_lease_ms(f);
        timer_start(f->tick, TICK_MS);
        timer_start(f->hello, 0);
}

/* ---- what happens there */

static void happened(struct far *f, const json_t *e)
{
        static const char *const quiet[] = {"submitted", "accepted",      "matched", "filed",
                                            "priority",  "results_taken", "purged",  "filled"};
        uint64_t request = (uint64_t)json_integer_value(json_object_get(e, "request"));
        const char *name = json_string_value(json_object_get(e, "event"));
        struct far_request *r = idmap_get(f->requests, request);
        const char *members = json_string_value(json_object_get(e, "members"));
        struct set some = {0};
        if (!r || !name)
                return;
        for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++)
                if (!strcmp(name, quiet[i]))
                        return;
        r->lease_over |= !strcmp(name, "lease_ended");
        if (!members || set_parse(&some, str_of(members), r->count) != 0)
                set_add_range(&some, 0, r->count);
        SET_FOREACH (&some, m)
                if (r->tasks[m] && r->tasks[m]->state == FAR_IN)
                        r->tasks[m]->dirty = true;
        set_deinit(&some);
        timer_start(f->later, 0);
}

static void on_feed(void *arg, int status, struct str body, const struct err *err)
{
        struct far *f = arg;
        json_t *doc = status == 200 ? far_json(body) : NULL, *e;
        json_t *next = json_object_get(doc, "next");
        BUF_CLEANUP struct buf why = {0};
        size_t i;
        f->feed = NULL;
        if (!json_is_integer(next)) { /* also when the log does not reach back so far: all is looked at */
                if (status)
                        far_error(&why, status, body);
                far_away(f, status ? buf_z(&why) : err->text);
        } else if (json_integer_value(next) < 0 || (uint64_t)json_integer_value(next) < f->cursor) {
                far_away(f, "its log has gone back"); /* a copy of older days: all is looked at */
        } else {
                bool any = (uint64_t)json_integer_value(next) > f->cursor;
                json_array_foreach (json_object_get(doc, "events"), i, e)
                        happened(f, e);
                f->cursor = (uint64_t)json_integer_value(next);
                if (any || clock_boot_ms() - f->feed_ms >= QUICK_MS)
                        ask_feed(f);
        }
        json_decref(doc);
}

static void ask_feed(struct far *f)
{
        BUF_CLEANUP struct buf path = {0};
        buf_printf(&path, "/v1/events?after=%llu&timeout_ms=%d", (unsigned long long)f->cursor, FEED_MS);
        f->feed_ms = clock_boot_ms();
        f->feed = far_ask(f, "GET", &path, STR(""), on_feed);
}

/* ---- room and paths */

static uint64_t count_of(const json_t *doc, const char *name)
{
        json_int_t n = json_integer_value(json_object_get(doc, name));
        return n > 0 ? (uint64_t)n : 0;
}

/* In thousandths, or in bytes; at most as many as no machine has. */
static uint64_t cpus_of(const json_t *doc, const char *name)
{
        return u64_min(count_of(doc, name), CPUS_MAX) * 1000;
}

static uint64_t bytes_of(const json_t *doc, const char *name)
{
        return u64_min(count_of(doc, name), MIB_MAX) << 20;
}

static void on_room(void *arg, int status, struct str body, const struct err *err)
{
        struct far *f = arg;
        json_t *doc = status == 200 ? far_json(body) : NULL;
        f->room = NULL;
        if (doc)
                f->capacity = (struct run_capacity){
                        .known = true,
                        .cpus_milli = cpus_of(doc, "cpus"),
                        .memory_bytes = bytes_of(doc, "memory_mib"),
                        .idle_cpus_milli = cpus_of(doc, "free_cpus"),
                        .idle_memory_bytes = bytes_of(doc, "free_memory_mib"),
                        .node_cpus_milli = cpus_of(doc, "largest_cpus"),
                        .node_memory_bytes = bytes_of(doc, "largest_memory_mib"),
                        .nodes = count_of(doc, "queues"),
                        .at_ms = u64_min(count_of(doc, "at_ms"), (uint64_t)clock_wall_ms()),
                        .tasks_max = UINT32_MAX,
                        .server = f->server,
                };
        json_decref(doc);
        if (!status)
                far_away(f, err->text);
}

void far_set_hops(struct far_task *t, const json_t *hops)
{
        char *text = json_dumps(hops, JSON_COMPACT);
        if (text && strlen(text) > HOPS_BYTES) {
                free(text);
                text = NULL;
        }
        free(t->hops);
        t->hops = text;
}

static void on_paths(void *arg, int status, struct str body, const struct err *err)
{
        struct far *f = arg;
        json_t *doc = status == 200 ? far_json(body) : NULL, *one;
        size_t i;
        f->paths = NULL;
        json_array_foreach (json_object_get(doc, "paths"), i, one) {
                struct far_request *r = idmap_get(f->requests, count_of(one, "request"));
                uint64_t member = count_of(one, "member");
                struct far_task *t = r && member < r->count ? r->tasks[member] : NULL;
                json_t *hops = json_object_get(one, "hops");
                if (!t || !json_is_array(hops))
                        continue;
                far_set_hops(t, hops);
        }
        if (json_is_integer(json_object_get(doc, "next")))
                f->paths_at = count_of(doc, "next");
        json_decref(doc);
        if (!status)
                far_away(f, err->text);
}

static void look_around(struct far *f, int64_t now)
{
        BUF_CLEANUP struct buf path = {0};
        if (!f->room && now - f->room_ms >= ROOM_MS) {
                f->room_ms = now;
                f->room = get(f, "/v1/capacity", on_room);
        }
        if (f->paths || now - f->paths_ms < PATHS_MS || idmap_count(f->requests) == 0)
                return;
        f->paths_ms = now;
        buf_printf(&path, "/v1/paths?after=%llu", (unsigned long long)f->paths_at);
        f->paths = far_ask(f, "GET", &path, STR(""), on_paths);
}

/* ---- leases */

int64_t far_lease_ms(const struct far *f)
{
        int64_t left = f->lease_until_ms - clock_boot_ms();
        if (f->lease_until_ms == 0)
                return LEASE_MS;
        left -= left / 10 < 10000 ? left / 10 : 10000; /* the far end is the earlier one */
        return left < 1000 ? 1000 : left;
}

static void on_renewed(void *arg, int status, struct str body, const struct err *err)
{
        struct far *f = arg;
        struct far_request *r = idmap_get(f->requests, f->renewing);
        (void)body;
        f->renew = NULL;
        if (!status) {
                far_away(f, err->text);
                return;
        }
        if (r && status / 100 == 2)
                r->renewed_ms = f->renewing_ms;
        if (r && (status == 409 || status == 404)) { /* it is over */
                r->lease_over = true;
                r->lease_serial = UINT64_MAX;
                for (size_t i = 0; i < r->count; i++)
                        if (r->tasks[i])
                                r->tasks[i]->dirty = true;
                timer_start(f->later, 0);
        }
        far_flush(f);
}

/* Each request once for each time that the agent's lease was renewed. */
static void send_renewal(struct far *f)
{
        int64_t now = clock_boot_ms();
        if (f->lease_until_ms == 0 && now - f->lease_ms >= LEASE_MS / 3) {
                f->lease_ms = now;
                f->lease_serial++;
        }
        for (struct far_request *r = f->sent; r && !f->renew; r = r->next) {
                BUF_CLEANUP struct buf path = {0}, body = {0};
                if (!r->number || r->lease_serial >= f->lease_serial || r->lease_over)
                        continue;
                r->lease_serial = f->lease_serial;
                f->renewing = r->number;
                f->renewing_ms = now;
                buf_printf(&path, "/v1/requests/%llu/lease", (unsigned long long)r->number);
                buf_printf(&body, "{\"lease_ms\":%lld}", (long long)far_lease_ms(f));
                f->renew = far_ask(f, "PUT", &path, buf_view(&body), on_renewed);
        }
}

void far_flush(struct far *f)
{
        if (!f->up)
                return;
        far_acts_send(f);
        send_renewal(f);
}

/* Nobody could tell the far server: by its own clock the lease is over there. */
static void give_up_killed(struct far *f, int64_t now)
{
        for (struct far_task *t = f->all, *next; t; t = next) {
                next = t->next;
                int64_t renewed_ms = t->in ? t->in->renewed_ms : 0;
                if (t->state != FAR_OVER && t->killing && !f->up && now - renewed_ms > f->lease_given_ms)
                        far_over(t,
                                 &(struct run_event){.state = RUN_ENDED,
                                                     .why = t->lease_ended ? RUN_LEASE_ENDED : RUN_KILLED,
                                                     .signaled = true,
                                                     .exit_code = 15},
                                 NULL);
        }
}

static void tick(void *arg)
{
        struct far *f = arg;
        int64_t now = clock_boot_ms();
        timer_start(f->tick, TICK_MS);
        if (f->lease_until_ms && now >= f->lease_until_ms)
                far_lease_ended(f);
        give_up_killed(f, now);
        if (!f->up)
                return;
        if (!f->feed && now - f->feed_ms >= QUICK_MS)
                ask_feed(f);
        look_around(f, now);
        far_flush(f);
        far_work(f);
}
