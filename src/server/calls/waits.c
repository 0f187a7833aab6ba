#include "server/calls/waits.h"

#include "base/heap.h"
#include "base/map.h"
#include "base/share.h"
#include "base/system/clock.h"

struct interest {                    /* one waiter's interest in one request */
        struct interest *next, **at; /* in the list of the request */
        struct interest *also;       /* the next interest of the same waiter */
        struct watched *watched;
        struct waiter *waiter;
};
struct watched { /* a request that at least one call waits for */
        uint64_t request;
        struct interest *first;
        struct watched *next_changed;
        bool changed;
};
struct waiter {
        /* key: due_ms, earliest first; for a waiter that is to be woken, the time when that was decided */
        struct heap_node due;
        int64_t due_ms;
        struct call *call;
        call_fn *woken;
        struct interest *interests;
        struct waiter *next, **at; /* of the waiters for durable records */
        bool wake;
        size_t places; /* that this waiter holds of its user's share */
};
struct waits {
        struct server *server;
        struct heap due;
        struct idmap *watched;
        struct watched *changed;
        struct waiter *durable;
        struct timer *timer;
        struct share *share; /* places for parked calls, by user */
};

#define SLICE_NS 4000000 /* of waking, before other work has its turn */

static bool before(const struct heap_node *a, const struct heap_node *b)
{
        return container_of(a, struct waiter, due)->due_ms < container_of(b, struct waiter, due)->due_ms;
}

static void interest_free(struct waits *w, struct interest *i)
{
        struct watched *watched = i->watched;

        *i->at = i->next;
        if (i->next)
                i->next->at = i->at;
        free(i);
        if (!watched->first && !watched->changed) {
                idmap_take(w->watched, watched->request);
                free(watched);
        }
}

static void places_give(struct waits *w, const struct call *c, size_t count)
{
        while (count-- > 0)
                share_give(w->share, str_of(c->who));
}

/* Takes `count` places for the caller. Returns false, and takes none, if there are not enough. */
static bool places_take(struct waits *w, const struct call *c, size_t count)
{
        for (size_t n = 0; n < count; n++)
                if (!share_take(w->share, str_of(c->who))) {
                        places_give(w, c, n);
                        return false;
                }
        return true;
}

/* Removes the waiter from all lists and frees it. Returns its call. */
static struct call *unpark(struct waits *w, struct waiter *x)
{
        struct call *c = x->call;

        while (x->interests) {
                struct interest *i = x->interests;

                x->interests = i->also;
                interest_free(w, i);
        }
        if (x->at) {
                *x->at = x->next;
                if (x->next)
                        x->next->at = x->at;
        }
        heap_take(&w->due, &x->due);
        places_give(w, c, x->places);
        free(x);
        return c;
}

static void set_timer(struct waits *w)
{
        struct heap_node *first = heap_first(&w->due);

        if (!first) {
                timer_stop(w->timer);
        } else {
                int64_t in = container_of(first, struct waiter, due)->due_ms - clock_boot_ms();

                timer_start(w->timer, in > 0 ? in : 0);
        }
}

static void wake(struct waits *w, struct waiter *x)
{
        call_fn *woken = x->woken;
        struct call *c = unpark(w, x);

        woken(w->server, c);
}

/* Wakes due waiters for one slice, at least the first; the timer continues with the others. */
static void wake_due(struct waits *w)
{
        int64_t now = clock_boot_ms(), end_ns = clock_mono_ns() + SLICE_NS;
        struct heap_node *first;

        for (size_t n = w->due.count; n > 0 && (first = heap_first(&w->due)); n--) {
                struct waiter *x = container_of(first, struct waiter, due);

                if (x->due_ms > now)
                        break;
                wake(w, x);
                if (clock_mono_ns() > end_ns)
                        break;
        }
        set_timer(w);
}

static void on_timer(void *arg)
{
        struct waits *w = arg;

        turn_begin(w->server->turn);
        wake_due(w);
        turn_end(w->server->turn);
}

struct waits *waits_new(struct server *s)
{
        struct waits *w = mem_new(struct waits);

        w->server = s;
        w->due.before = before;
        w->watched = idmap_new();
        w->share = share_new(WAITS_MAX);
        w->timer = timer_new(s->loop, on_timer, w);
        return w;
}

void waits_free(struct waits *w)
{
        struct heap_node *first;
        size_t at = 0;
        void *v;

        if (!w)
                return;
        while ((first = heap_first(&w->due)))
                task_drop(&unpark(w, container_of(first, struct waiter, due))->task);
        while (idmap_next(w->watched, &at, NULL, &v))
                free(v);
        idmap_free(w->watched);
        heap_deinit(&w->due);
        timer_free(w->timer);
        share_free(w->share);
        free(w);
}

static struct waiter *park(struct server *s, struct call *c, size_t places, int64_t timeout_ms,
                           call_fn *woken)
{
        struct waits *w = s->waits;
        struct waiter *x;

        if (!places_take(w, c, places)) {
                call_fail(c, 503, "busy",
                          "too many calls of yours are waiting, and others need room, too: try again later");
                return NULL;
        }
        x = mem_new(struct waiter);
        x->call = c;
        x->woken = woken;
        x->places = places;
        x->due_ms = clock_boot_ms() + (timeout_ms > 0 ? timeout_ms : 0);
        heap_put(&w->due, &x->due);
        set_timer(w);
        return x;
}

static void add_interest(struct waits *w, struct waiter *x, uint64_t request)
{
        struct watched *watched = idmap_get(w->watched, request);
        struct interest *i;

        if (!watched) {
                watched = mem_new(struct watched);
                watched->request = request;
                idmap_put(w->watched, request, watched);
        }
        i = mem_new(struct interest);
        i->watched = watched;
        i->waiter = x;
        i->also = x->interests;
        x->interests = i;
        i->at = &watched->first;
        i->next = watched->first;
        if (i->next)
                i->next->at = &i->next;
        watched->first = i;
}

bool waits_park(struct server *s, struct call *c, const struct ids *ids, int64_t timeout_ms, call_fn *woken)
{
        struct waiter *x = park(s, c, ids && ids->count ? ids->count : 1, timeout_ms, woken);

        for (size_t i = 0; x && ids && i < ids->count; i++)
                add_interest(s->waits, x, ids->items[i].request);
        return x != NULL;
}

void waits_park_durable(struct server *s, struct call *c, int64_t timeout_ms, call_fn *woken)
{
        struct waits *w = s->waits;
        struct waiter *x = park(s, c, 1, timeout_ms, woken);

        if (!x)
                return;
        x->at = &w->durable;
        x->next = w->durable;
        if (x->next)
                x->next->at = &x->next;
        w->durable = x;
}

void waits_changed(struct server *s, uint64_t request)
{
        struct watched *watched = s->waits ? idmap_get(s->waits->watched, request) : NULL;

        if (!watched || watched->changed)
                return;
        watched->changed = true;
        watched->next_changed = s->waits->changed;
        s->waits->changed = watched;
}

/* Marks a waiter as due now. The first mark counts, so that the waiter who has been due longest is woken
 * first. */
static void make_due(struct waits *w, struct waiter *x, int64_t now)
{
        if (x->wake)
                return;
        x->wake = true;
        if (x->due_ms <= now)
                return;
        heap_take(&w->due, &x->due);
        x->due_ms = now;
        heap_put(&w->due, &x->due);
}

void waits_flush(struct server *s)
{
        struct waits *w = s->waits;
        int64_t now = clock_boot_ms();

        if (!w->changed)
                return;
        while (w->changed) {
                struct watched *watched = w->changed;

                w->changed = watched->next_changed;
                watched->changed = false;
                for (struct interest *i = watched->first; i; i = i->next)
                        make_due(w, i->waiter, now);
                if (!watched->first) {
                        idmap_take(w->watched, watched->request);
                        free(watched);
                }
        }
        wake_due(w);
}

bool waits_any_durable(const struct server *s)
{
        return s->waits && s->waits->durable;
}

void waits_durable(struct server *s)
{
        struct waits *w = s->waits;
        int64_t now = clock_boot_ms();

        if (!w->durable)
                return;
        while (w->durable) { /* calls that park again meanwhile wait for the next records */
                struct waiter *x = w->durable;

                w->durable = x->next;
                x->at = NULL;
                make_due(w, x, now);
        }
        wake_due(w);
}
