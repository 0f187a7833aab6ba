/* Tells the server where attempts are: what the batch system calls them, or, of those that were handed on to
 * another server, their path there. It informs only, so it has time: an attempt that is over within a second
 * is never told of. */
#include <stdio.h>

#include "agent/agent.h"
#include "base/arena.h"
#include "base/clock.h"

#define AFTER_MS 1000
#define MANY     1000 /* in one message */

static void where_is(const struct attempt *at, struct run_where *ret)
{
        struct runner *r = at->q->backend->runner;
        *ret = (struct run_where){.word = ""};
        if (r->kind->where)
                r->kind->where(r, attempt_task(at), ret);
        else if (at->pid)
                snprintf(ret->native, sizeof(ret->native), "%lld", (long long)at->pid);
        if (!ret->word)
                ret->word = "";
        if (!ret->said)
                ret->said = "";
}

static Drover__Whereabout *describe(const struct attempt *at, const struct run_where *w, struct arena *room)
{
        Drover__Whereabout *m = arena_alloc(room, sizeof(*m));
        drover__whereabout__init(m);
        m->request = at->request;
        m->member = at->member;
        m->fence = at->fence;
        m->runner = at->q->config->runner;
        m->native = arena_dup(room, w->native, strlen(w->native));
        m->word = (char *)w->word;
        m->said = arena_dup(room, w->said, strlen(w->said));
        m->hops.len = w->hops.n;
        m->hops.data = (uint8_t *)arena_dup(room, w->hops.n ? w->hops.p : "", w->hops.n);
        return m;
}

static uint64_t hash(const struct run_where *w)
{
        return map_hash(w->said, strlen(w->said)) * 13 + map_hash(w->native, strlen(w->native)) * 31 +
               map_hash(w->word, strlen(w->word)) * 7 + map_hash(w->hops.n ? w->hops.p : "", w->hops.n) + 1;
}

void whereabouts_tell(struct agent *a)
{
        Drover__Whereabouts m = DROVER__WHEREABOUTS__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        Drover__Whereabout *list[MANY];
        struct arena room = {0};
        int64_t now = clock_boot_ms();
        if (!a->greeted)
                return;
        m.attempts = list;
        to.kind_case = DROVER__TO_SERVER__KIND_WHEREABOUTS;
        to.whereabouts = &m;
        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_RUNNING]; at && m.n_attempts < MANY;
                     at = at->next) {
                        struct run_where w;
                        if (now - at->assigned_ms < AFTER_MS)
                                continue;
                        where_is(at, &w);
                        if (hash(&w) == at->told_where || (!*w.native && !*w.said && !w.hops.n))
                                continue;
                        at->told_where = hash(&w);
                        list[m.n_attempts++] = describe(at, &w, &room);
                }
        if (m.n_attempts)
                connect_send(a, &to);
        arena_deinit(&room);
}

void whereabouts_tell_end(const struct attempt *at)
{
        Drover__Whereabouts m = DROVER__WHEREABOUTS__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        Drover__Whereabout *one;
        struct arena room = {0};
        struct run_where w;
        where_is(at, &w);
        if (!at->a->greeted || !w.hops.n)
                return;
        one = describe(at, &w, &room);
        m.attempts = &one;
        m.n_attempts = 1;
        to.kind_case = DROVER__TO_SERVER__KIND_WHEREABOUTS;
        to.whereabouts = &m;
        connect_send(at->a, &to);
        arena_deinit(&room);
}
