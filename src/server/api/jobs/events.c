/* GET /v1/events: the log as a feed. A caller who has read all of it waits until more is durable. Users
 * get the events of their own requests; the cursor skips the others. */
#include <inttypes.h>

#include "base/system/clock.h"
#include "core/query.h"
#include "server/api/routes.h"
#include "server/calls/waits.h"

#define LIMIT_DEFAULT  1000
#define LIMIT_MAX      10000
#define PAGE_BYTES     (2u << 20) /* of records; in JSON they are several times as long */
#define TIMEOUT_MAX_MS 300000
/* after a read that found only others' events: without it each follower would read after each commit */
#define REST_MS 200

struct item {
        uint64_t seq, request;
        struct str record;
};
struct feed {
        uint64_t after, limit;
        int64_t deadline_ms;
        struct item *items;
        size_t count;
        bool full; /* the read stopped before the end of the log */
        struct arena arena;
};

static void events_state_free(void *arg)
{
        struct feed *f = arg;

        arena_deinit(&f->arena);
        free(f->items);
        free(f);
}

static void write_event(struct json *j, uint64_t seq, const struct event *e)
{
        BUF_CLEANUP struct buf members = {0};

        set_print(&members, &e->members);
        json_open(j, '{');
        json_kint(j, "seq", (int64_t)seq);
        json_kint(j, "at_ms", e->at_ms);
        json_kstrz(j, "event", event_name(e->type));
        json_kint(j, "request", (int64_t)e->request);
        if (members.n)
                json_kstr(j, "members", buf_view(&members));
        if (e->fence)
                json_kint(j, "fence", e->fence);
        if (e->agent.n)
                json_kstr(j, "agent", e->agent);
        if (e->queue.n)
                json_kstr(j, "queue", e->queue);
        if (e->type == EVENT_EXITED || e->type == EVENT_LOST || e->type == EVENT_REFUSED ||
            e->type == EVENT_VACATING)
                json_kstrz(j, "next", job_state_name((enum job_state)e->next));
        if (e->type == EVENT_EXITED) {
                json_kbool(j, "signaled", e->signaled);
                json_kint(j, "exit_code", e->exit_code);
        }
        if (e->type == EVENT_SUBMITTED)
                json_kint(j, "jobs", e->value);
        if (e->type == EVENT_PRIORITY)
                json_kint(j, "priority", e->value);
        if (e->code)
                json_kint(j, "code", e->code);
        if (e->reason.n)
                json_kstr(j, "reason", e->reason);
        json_close(j, '}');
}

static void write_feed(struct server *s, struct call *c)
{
        struct feed *f = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        json_open(&j, '{');
        json_key(&j, "events");
        json_open(&j, '[');
        for (size_t i = 0; i < f->count; i++) {
                struct event e = {0};

                if (event_unpack(&e, f->items[i].record, NULL) == 0)
                        write_event(&j, f->items[i].seq, &e);
                event_deinit(&e);
        }
        json_close(&j, ']');
        json_kint(&j, "next", (int64_t)f->after);
        json_close(&j, '}');
        call_reply(c);
}

static void events_ask_reader(struct server *s, struct call *c);

static void events_woken(struct server *s, struct call *c)
{
        (void)s;
        c->when = TURN_NOW;
        call_io(c, events_ask_reader);
}

/* Core thread: keeps the caller's events. If there is none, waits for more. */
static void sift(struct server *s, struct call *c)
{
        struct feed *f = c->state;
        int64_t now = clock_boot_ms();
        bool in_vain = f->count > 0;
        size_t n = 0;

        for (size_t i = 0; i < f->count; i++) {
                struct core_request r;

                if (c->role == ROLE_USER &&
                    (core_request_get(s->core, f->items[i].request, &r) != 0 || !call_may(c, r.owner)))
                        continue;
                f->items[n++] = f->items[i];
        }
        f->count = n;
        c->when = TURN_NOW; /* the records that were read are durable */
        if (n == 0 && f->full)
                call_io(c, events_ask_reader);
        else if (n || now >= f->deadline_ms)
                call_io(c, write_feed);
        else if (in_vain)
                waits_park(s, c, NULL, now + REST_MS < f->deadline_ms ? REST_MS : f->deadline_ms - now,
                           events_woken);
        else if (f->after < atomic_load(&s->durable_seq))
                call_io(c, events_ask_reader);
        else
                waits_park_durable(s, c, f->deadline_ms - now, events_woken);
}

static int on_record(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct feed *f = arg;
        struct event e = {0};

        (void)err;
        f->full = f->count == f->limit || f->arena.used > PAGE_BYTES;
        if (f->full)
                return 1;
        if (event_unpack(&e, record, NULL) == 0)
                f->items[f->count++] = (struct item){seq, e.request, arena_str(&f->arena, record)};
        event_deinit(&e);
        f->after = seq;
        return 0;
}

static void read_events(struct server *s, struct call *c)
{
        struct feed *f = c->state;
        struct err err = {0};
        int r;

        arena_reset(&f->arena);
        f->count = 0;
        f->full = false;
        r = store_scan(s->store, f->after + 1, on_record, f, &err);
        if (r != 0 && r != 1)
                call_fail(c, 410, "gone",
                          "the log does not reach back to %" PRIu64 ": begin with the jobs as they are, "
                          "and after=%" PRIu64,
                          f->after, (uint64_t)atomic_load(&s->durable_seq));
        else
                call_core(c, sift);
}

static void events_ask_reader(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, read_events);
}

void api_events(struct server *s, struct call *c)
{
        struct feed *f = call_state(c, sizeof(*f), events_state_free);
        uint64_t timeout_ms = 0;

        (void)s;
        f->limit = LIMIT_DEFAULT;
        if (!call_number(c, "after", UINT64_MAX - 1, &f->after) ||
            !call_number(c, "limit", LIMIT_MAX, &f->limit) ||
            !call_number(c, "timeout_ms", TIMEOUT_MAX_MS, &timeout_ms))
                return;
        if (f->limit == 0)
                f->limit = LIMIT_DEFAULT;
        f->deadline_ms = clock_boot_ms() + (int64_t)timeout_ms;
        f->items = mem_array(NULL, f->limit, sizeof(*f->items));
        call_reader(c, read_events);
}
