/* Follows the other server by one long poll of its log, and asks for its room and the paths of jobs behind
 * it. */
#include <stdlib.h>

#include "base/format/json_read.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "base/system/clock.h"
#include "base/u64.h"
#include "run/drover/answers.h"
#include "run/drover/feed.h"
#include "run/drover/give_back.h"
#include "run/drover/kinds.h"
#include "run/drover/link.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

#define FEED_MS      30000
#define ROOM_MS      5000
#define PATHS_MS     2000
#define QUICK_MS     1000  /* an empty poll that ends earlier is repeated with the next tick */
#define WHY_MS       10000 /* interval of questions about a request */
#define WHY_FIRST_MS 2000
#define WHY_LINES    4
#define CPUS_MAX     100000000u
#define MIB_MAX      (UINT64_C(1) << 40)

struct remote_feed {
        uint64_t why_of;           /* the request that REMOTE_WHY asks about */
        uint64_t cursor, paths_at; /* positions in the other server's log and in its list of paths */
        int64_t asked_ms, room_ms, paths_ms; /* boot clock; time of the last call of each kind */
        struct run_capacity capacity;
        char nothing[400];          /* capacity.nothing, unless that is NULL */
        struct remote_kinds *kinds; /* kinds of the places there; NULL: not reported */
};

static void happened(struct remote *f, const json_t *e)
{
        static const char *const quiet[] = {"submitted", "accepted",      "matched", "filed",
                                            "priority",  "results_taken", "purged",  "filled"};
        uint64_t request = (uint64_t)json_integer_value(json_object_get(e, "request"));
        const char *name = json_string_value(json_object_get(e, "event"));
        struct remote_request *r = idmap_get(f->table.requests, request);
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
                if (r->tasks[m] && r->tasks[m]->state == REMOTE_IN)
                        r->tasks[m]->dirty = true;
        set_deinit(&some);
        timer_start(f->later, 0);
}

static void ask_feed(struct remote *f);

static void on_feed(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;
        json_t *doc = status == 200 ? remote_json(body) : NULL, *e;
        json_t *next = json_object_get(doc, "next");
        BUF_CLEANUP struct buf why = {0};
        size_t i;

        f->polls[REMOTE_FEED] = NULL;
        if (!json_is_integer(next)) { /* also when the log does not reach back so far: looks at all tasks */
                if (status)
                        remote_error(&why, status, body);
                remote_unreachable(f, status ? buf_z(&why) : err->text);
        } else if (json_integer_value(next) < 0 || (uint64_t)json_integer_value(next) < f->feed->cursor) {
                remote_unreachable(
                        f, "its log has gone back"); /* restored from an older copy: looks at all tasks */
        } else {
                bool any = (uint64_t)json_integer_value(next) > f->feed->cursor;

                json_array_foreach (json_object_get(doc, "events"), i, e)
                        happened(f, e);
                f->feed->cursor = (uint64_t)json_integer_value(next);
                if (any || clock_boot_ms() - f->feed->asked_ms >= QUICK_MS)
                        ask_feed(f);
        }
        json_decref(doc);
}

static void ask_feed(struct remote *f)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "/v1/events?after=%llu&timeout_ms=%d", (unsigned long long)f->feed->cursor,
                   FEED_MS);
        f->feed->asked_ms = clock_boot_ms();
        f->polls[REMOTE_FEED] = remote_ask(f, "GET", &path, STR(""), on_feed);
}

static uint64_t feed_count_of(const json_t *doc, const char *name)
{
        json_int_t n = json_integer_value(json_object_get(doc, name));

        return n > 0 ? (uint64_t)n : 0;
}

/* Reads processors, in thousandths, or bytes; limited to more than any machine has. */
static uint64_t cpus_of(const json_t *doc, const char *name)
{
        return u64_min(feed_count_of(doc, name), CPUS_MAX) * 1000;
}

static uint64_t feed_bytes_of(const json_t *doc, const char *name)
{
        return u64_min(feed_count_of(doc, name), MIB_MAX) << 20;
}

static void on_room(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;
        json_t *doc = status == 200 ? remote_json(body) : NULL;

        f->polls[REMOTE_ROOM] = NULL;
        if (doc)
                f->feed->capacity = (struct run_capacity){
                        .known = true,
                        .cpus_milli = cpus_of(doc, "cpus"),
                        .memory_bytes = feed_bytes_of(doc, "memory_mib"),
                        .idle_cpus_milli = cpus_of(doc, "free_cpus"),
                        .idle_memory_bytes = feed_bytes_of(doc, "free_memory_mib"),
                        .node_cpus_milli = cpus_of(doc, "largest_cpus"),
                        .node_memory_bytes = feed_bytes_of(doc, "largest_memory_mib"),
                        .nodes = feed_count_of(doc, "queues"),
                        .at_ms = u64_min(feed_count_of(doc, "at_ms"), (uint64_t)clock_wall_ms()),
                        .tasks_max = UINT32_MAX,
                        .server = f->link.server,
                };
        if (doc && !f->feed->capacity.nodes && feed_count_of(doc, "refusing")) {
                snprintf(f->feed->nothing, sizeof(f->feed->nothing),
                         "no agent of the other server runs jobs of %s", f->link.you);
                f->feed->capacity.nothing = f->feed->nothing;
        }
        if (doc) {
                remote_kinds_free(f->feed->kinds);
                f->feed->kinds = remote_kinds_read(json_object_get(doc, "kinds"));
                remote_kinds_tell(f->feed->kinds, &f->feed->capacity);
        }
        json_decref(doc);
        if (!status)
                remote_unreachable(f, err->text);
}

static void on_paths(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;
        json_t *doc = status == 200 ? remote_json(body) : NULL, *one;
        size_t i;

        f->polls[REMOTE_PATHS] = NULL;
        json_array_foreach (json_object_get(doc, "paths"), i, one) {
                struct remote_request *r = idmap_get(f->table.requests, feed_count_of(one, "request"));
                uint64_t member = feed_count_of(one, "member");
                struct remote_task *t = r && member < r->count ? r->tasks[member] : NULL;
                json_t *hops = json_object_get(one, "hops");

                if (!t || !json_is_array(hops))
                        continue;
                remote_set_hops(t, hops);
        }
        if (json_is_integer(json_object_get(doc, "next")))
                f->feed->paths_at = feed_count_of(doc, "next");
        json_decref(doc);
        if (!status)
                remote_unreachable(f, err->text);
}

/* Returns a member of the request that waits there; NULL: none. */
static const struct remote_task *waiting_member(const struct remote_request *r)
{
        for (size_t i = 0; i < r->count; i++)
                if (r->tasks[i] && remote_waits(r->tasks[i]))
                        return r->tasks[i];
        return NULL;
}

static void on_why(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;
        json_t *doc = status == 200 ? remote_json(body) : NULL, *line;
        struct remote_request *r = idmap_get(f->table.requests, f->feed->why_of);
        BUF_CLEANUP struct buf all = {.max = 64 << 10}, why = {0};
        size_t i;

        f->polls[REMOTE_WHY] = NULL;
        json_array_foreach (json_object_get(doc, "text"), i, line)
                if (json_is_string(line) && i < WHY_LINES)
                        buf_printf(&all, "%s%s", all.n ? " " : "", json_string_value(line));
        if (r && doc && json_is_array(json_object_get(doc, "text"))) {
                remote_words(&why, buf_view(&all));
                while (why.n && why.p[why.n - 1] == '.') /* it becomes part of a sentence */
                        buf_truncate(&why, why.n - 1);
                free(r->said);
                r->said = why.n ? mem_dupz(buf_z(&why)) : NULL;
                remote_places_told(r, doc, clock_boot_ms());
        }
        json_decref(doc);
        if (!status)
                remote_unreachable(f, err->text);
}

/* Asks why a request waits, one request at a time, since each answer examines all places there. Members of a
 * request wait for the same reason. */
static void ask_why(struct remote *f, int64_t now)
{
        BUF_CLEANUP struct buf path = {0};
        struct remote_request *next = NULL;

        if (f->polls[REMOTE_WHY])
                return;
        for (struct remote_request *r = f->table.sent; r; r = r->next) {
                if (r->number && !r->asked_why_ms)
                        r->asked_why_ms = now - WHY_MS + WHY_FIRST_MS; /* most jobs begin earlier */
                if (r->number && now - r->asked_why_ms >= WHY_MS && waiting_member(r) &&
                    (!next || r->asked_why_ms < next->asked_why_ms))
                        next = r;
        }
        if (!next)
                return;
        next->asked_why_ms = now;
        f->feed->why_of = next->number;
        buf_printf(&path, "/v1/jobs/%llu.%u/why", (unsigned long long)next->number,
                   waiting_member(next)->member);
        f->polls[REMOTE_WHY] = remote_ask(f, "GET", &path, STR(""), on_why);
}

void remote_feed_look(struct remote *f, int64_t now)
{
        BUF_CLEANUP struct buf path = {0};

        if (!f->polls[REMOTE_FEED] && now - f->feed->asked_ms >= QUICK_MS)
                ask_feed(f);
        if (!f->polls[REMOTE_ROOM] && now - f->feed->room_ms >= ROOM_MS) {
                f->feed->room_ms = now;
                f->polls[REMOTE_ROOM] = remote_get(f, "/v1/capacity?kinds=1", on_room);
        }
        ask_why(f, now);
        if (f->polls[REMOTE_PATHS] || now - f->feed->paths_ms < PATHS_MS ||
            idmap_count(f->table.requests) == 0)
                return;
        f->feed->paths_ms = now;
        buf_printf(&path, "/v1/paths?after=%llu", (unsigned long long)f->feed->paths_at);
        f->polls[REMOTE_PATHS] = remote_ask(f, "GET", &path, STR(""), on_paths);
}

void remote_feed_start(struct remote *f, uint64_t cursor)
{
        remote_kinds_free(f->feed->kinds);
        *f->feed = (struct remote_feed){.cursor = cursor};
        ask_feed(f);
}

uint64_t remote_feed_cursor(const struct remote *f)
{
        return f->feed->cursor;
}

struct run_capacity remote_capacity(const struct remote *f)
{
        struct run_capacity c = f->feed->capacity;

        c.known = c.known && f->link.up;
        return c;
}

void remote_feed_free(struct remote_feed *feed)
{
        remote_kinds_free(feed ? feed->kinds : NULL);
        free(feed);
}

struct remote_feed *remote_feed_new(void)
{
        return mem_new(struct remote_feed);
}
