/* Tells the server where attempts are: the agent's work before and after they run, their id in the batch
 * system, or for delegated ones their path at other servers. The information is for people only, so it may
 * be late: what is over within a second is never reported, and progress in bytes only in steps. */
#include "agent/attempt/location.h"

#include <stdio.h>

#include "agent/container/containers.h"
#include "agent/environment/environments.h"
#include "agent/outbox/outbox.h"
#include "agent/transfer/fetch.h"
#include "agent/transfer/inputs.h"
#include "agent/transfer/output_transfers.h"
#include "base/arena.h"
#include "base/system/clock.h"
#include "move/task.h"

#define AFTER_MS         1000
#define WAITING_AFTER_MS 10000 /* many are read ahead, and wait for a moment */
#define MANY             1000  /* limit in one message */
#define DOING_MAX        256u  /* bytes of a description */
#define STEPS_TOLD       16u   /* progress is reported in so many steps of a known size */
#define STEP_BYTES       (64u << 20)

struct doing { /* `words` empty: the agent does nothing for the attempt */
        struct buf words;
        int64_t since_ms;
        uint64_t bytes, bytes_all;
};

/* ---- the agent's work for an attempt */

static void fetching(const struct attempt *at, struct doing *d)
{
        const struct fetch *f = at->fetches.seen.one;

        if (at->fetches.waits > 1) {
                buf_printf(&d->words, "fetching %u inputs", at->fetches.waits);
        } else {
                MEM_CLEANUP char *url = f->shipped ? mem_dupz(f->name) : move_url_shown(f->url);

                buf_printf(&d->words, "fetching the input %s", url);
        }
        d->since_ms = f->began_ms;
        d->bytes = at->fetches.seen.bytes;
        d->bytes_all = at->fetches.seen.all_known ? at->fetches.seen.bytes_all : 0;
}

static void staging(const struct attempt *at, struct doing *d)
{
        if (at->container.pull)
                containers_pulling(at, &d->words, &d->since_ms);
        else if (at->environment.making)
                environments_making(at, &d->words, &d->since_ms);
        else if (at->fetches.waits && at->fetches.seen.one)
                fetching(at, d);
        else if (at->environment.waits)
                buf_addz(&d->words, "looking what environments can be made here");
        else if (at->stage)
                buf_addz(&d->words, "copying its inputs");
        else if (!at->fetches.wanted && at->t->m->credential_count)
                buf_addz(&d->words, "waiting for its credentials from the server");
}

static void waiting(const struct attempt *at, struct doing *d)
{
        if (at->adopted)
                return;
        if (at->suspended)
                buf_addz(&d->words, "suspended before it began");
        else if (at->wait_for_go)
                buf_addz(&d->words, "waiting for the others of its gang");
        else if (!at->q->backend->ready || at->q->backend->unreachable)
                buf_addz(&d->words, queue_is_local(at->q) ? "waiting for the agent's shepherd"
                                                          : "waiting for the batch system to answer");
        else
                buf_addz(&d->words, "waiting for room in the queue");
}

static void look_at_attempt(const struct attempt *at, int64_t now_ms, struct doing *d)
{
        d->since_ms = at->entered_ms;
        if (now_ms - at->entered_ms < (at->state == ATTEMPT_WAITING ? WAITING_AFTER_MS : AFTER_MS))
                return;
        switch (at->state) {
        case ATTEMPT_WAITING: waiting(at, d); break;
        case ATTEMPT_STAGING: staging(at, d); break;
        case ATTEMPT_DELIVERING: output_transfers_doing(at, &d->words); break;
        default: break;
        }
}

/* ---- where it is */

static void where_is(const struct attempt *at, struct run_where *ret)
{
        struct runner *r = at->q->backend->runner;

        *ret = (struct run_where){.word = ""};
        if (r->kind->where && at->state >= ATTEMPT_RUNNING)
                r->kind->where(r, attempt_task(at), ret);
        else if (at->pid && at->state == ATTEMPT_RUNNING)
                snprintf(ret->native, sizeof(ret->native), "%lld", (long long)at->pid);
        if (at->q->backend->unreachable && at->state == ATTEMPT_RUNNING) {
                ret->word = "unreachable"; /* what was known before may be outdated */
                ret->said = at->q->backend->unreachable;
        }
        if (!ret->word)
                ret->word = "";
        if (!ret->said)
                ret->said = "";
}

/* Texts are copied into the arena. */
static struct attempt_location describe(const struct attempt *at, const struct run_where *w,
                                        const struct doing *d, struct arena *room)
{
        struct attempt_location l = {.at = at, .word = w->word, .doing = ""};

        l.native = arena_dup(room, w->native, strlen(w->native));
        l.said = arena_dup(room, w->said, strlen(w->said));
        l.hops = str_make(arena_dup(room, w->hops.n ? w->hops.p : "", w->hops.n), w->hops.n);
        if (d->words.n) {
                struct str words = str_head(buf_view(&d->words), DOING_MAX);

                l.doing = arena_dup(room, words.p, words.n);
                l.doing_since_ms = d->since_ms;
                l.doing_bytes = d->bytes;
                l.doing_bytes_all = d->bytes_all;
        }
        return l;
}

static uint64_t hash(const struct run_where *w, const struct doing *d)
{
        uint64_t step = d->bytes_all ? d->bytes_all / STEPS_TOLD + 1 : STEP_BYTES;

        return map_hash(w->said, strlen(w->said)) * 13 + map_hash(w->native, strlen(w->native)) * 31 +
               map_hash(w->word, strlen(w->word)) * 7 + map_hash(w->hops.n ? w->hops.p : "", w->hops.n) +
               map_hash(d->words.n ? d->words.p : "", d->words.n) * 17 +
               (d->words.n ? (uint64_t)d->since_ms + d->bytes / step * 3 : 0) + 1;
}

/* Returns whether there is something new to report about the attempt. */
static bool has_changed(struct attempt *at, const struct run_where *w, const struct doing *d)
{
        bool something = *w->native || *w->said || w->hops.n || d->words.n;
        uint64_t now = hash(w, d);

        if (now == at->told_where || (!something && !at->told_where))
                return false;
        at->told_where = now;
        return true;
}

void attempt_location_tell(struct agent *a)
{
        static const enum attempt_state states[] = {ATTEMPT_RUNNING, ATTEMPT_STAGING, ATTEMPT_DELIVERING,
                                                    ATTEMPT_WAITING};
        struct attempt_location list[MANY];
        size_t count = 0;
        struct arena room = {0};
        int64_t now = clock_boot_ms(), now_unix = clock_wall_ms();

        if (!a->greeted)
                return;
        inputs_look(a);
        for (size_t i = 0; i < a->queue_count * 4; i++)
                for (struct attempt *at = a->queues[i / 4]->lists[states[i % 4]]; at && count < MANY;
                     at = at->next) {
                        struct run_where w;
                        struct doing d = {.words = {.max = 4096}};

                        if (now - at->assigned_ms < AFTER_MS)
                                continue;
                        where_is(at, &w);
                        look_at_attempt(at, now_unix, &d);
                        if (has_changed(at, &w, &d))
                                list[count++] = describe(at, &w, &d, &room);
                        buf_deinit(&d.words);
                }
        outbox_locations(a, list, count);
        arena_deinit(&room);
}

void attempt_location_tell_end(const struct attempt *at)
{
        const struct doing none = {.since_ms = 0};
        struct arena room = {0};
        struct run_where w;

        where_is(at, &w);
        if (!at->a->greeted || !w.hops.n)
                return;
        const struct attempt_location one = describe(at, &w, &none, &room);
        outbox_locations(at->a, &one, 1);
        arena_deinit(&room);
}
