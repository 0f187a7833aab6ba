/* What happens at the other server, by one long poll of its log; its room, and the paths of jobs behind it.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/u64.h"
#include "run/drover/private.h"

#define FEED_MS  30000
#define ROOM_MS  5000
#define PATHS_MS 2000
#define QUICK_MS 1000 /* a long poll that tells nothing sooner is asked again with the next tick */
#define CPUS_MAX 100000000u
#define MIB_MAX  (UINT64_C(1) << 40)

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

static void ask_feed(struct far *f);

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

void far_feed_look(struct far *f, int64_t now)
{
        BUF_CLEANUP struct buf path = {0};
        if (!f->feed && now - f->feed_ms >= QUICK_MS)
                ask_feed(f);
        if (!f->room && now - f->room_ms >= ROOM_MS) {
                f->room_ms = now;
                f->room = far_get(f, "/v1/capacity", on_room);
        }
        if (f->paths || now - f->paths_ms < PATHS_MS || idmap_count(f->requests) == 0)
                return;
        f->paths_ms = now;
        buf_printf(&path, "/v1/paths?after=%llu", (unsigned long long)f->paths_at);
        f->paths = far_ask(f, "GET", &path, STR(""), on_paths);
}

void far_feed_start(struct far *f, uint64_t cursor)
{
        f->cursor = cursor;
        f->paths_at = 0;
        f->room_ms = f->paths_ms = 0;
        ask_feed(f);
}
