/* GET /v1/wait: how many of the named jobs are in which state; answered when that differs from what the
 * caller has seen.
 *
 * Changes come in bursts, so a caller is answered at most every WAIT_PACE_MS, except when all have ended.
 * Whether a single job succeeded is in its history row, so a call about some members of a request reads
 * these rows once all have ended. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "core/query.h"
#include "server/api/routes.h"
#include "server/calls/waits.h"

#define WAIT_PACE_MS  100
#define WAIT_MAX_MS   300000
#define WAIT_SEEN_MAX 200
/* up to this many named jobs are counted at every change, so that their end is seen at once */
#define SOME_JOBS     1000
#define RANGE_MEMBERS 4096 /* rows read at once */
#define SLICE_NS      4000000

struct wait {
        struct ids ids;
        char seen[WAIT_SEEN_MAX], now[WAIT_SEEN_MAX];
        int64_t came_ms, deadline_ms;
        struct core_counts n;
        bool some;             /* single members of requests are named */
        bool stuck;            /* all that is left of their requests is held, or waits for held jobs */
        uint64_t held_request; /* with stuck: one of the held jobs */
        uint32_t held_member;
        /* where the next slice of their rows begins */
        size_t at;
        uint64_t member;
};
struct failures {
        const struct set *members;
        uint64_t count;
};

static void wait_state_free(void *arg)
{
        struct wait *w = arg;

        ids_deinit(&w->ids);
        free(w);
}

static void count_some(struct server *s, const struct id *id, struct core_counts *n)
{
        for (unsigned state = 0; state < JOB_STATES; state++) {
                struct set members = {0};
                uint64_t count;

                if (core_members(s->core, id->request, 1u << state, &members) != 0)
                        continue;
                set_keep_all(&members, &id->members);
                count = set_count(&members);
                set_deinit(&members);
                n->jobs += count;
                if (state == JOB_COMPLETED)
                        n->completed += count;
                else if (state == JOB_REMOVED)
                        n->removed += count;
                else if (state == JOB_HELD)
                        n->held += count;
                else if (job_state_runs((enum job_state)state))
                        n->running += count;
                else
                        n->idle += count;
        }
}

static void add_counts(struct core_counts *to, const struct core_counts *n)
{
        to->jobs += n->jobs;
        to->idle += n->idle;
        to->running += n->running;
        to->held += n->held;
        to->completed += n->completed;
        to->failed += n->failed;
        to->removed += n->removed;
        to->handled += n->handled;
}

/* Returns false if an id does not exist or belongs to another user; the call has then ended. */
static bool count_all(struct server *s, struct call *c)
{
        struct wait *w = c->state;
        MEM_CLEANUP uint64_t *left = mem_array(NULL, w->ids.count, sizeof(*left));
        size_t left_count = 0;
        bool goes_on = false;

        w->n = (struct core_counts){0};
        for (size_t i = 0; i < w->ids.count; i++) {
                const struct id *id = &w->ids.items[i];
                struct core_request r;
                uint64_t before = w->n.jobs;

                if (core_request_get(s->core, id->request, &r) != 0 || !call_may(c, r.owner)) {
                        call_fail(c, 404, "not_found",
                                  id->request <= core_request_last(s->core)
                                          ? "request %" PRIu64 " is in the history, or not yours"
                                          : "there is no request %" PRIu64,
                                  id->request);
                        return false;
                }
                if (id->some)
                        count_some(s, id, &w->n);
                else
                        add_counts(&w->n, &r.counts);
                if (id->some && w->n.jobs - before != set_count(&id->members)) {
                        call_fail(c, 404, "not_found", "request %" PRIu64 " has only the jobs 0 to %" PRIu64,
                                  id->request, r.counts.jobs - 1);
                        return false;
                }
                goes_on |= r.counts.running > 0 || r.counts.idle > r.counts.waiting;
                left[left_count++] = id->request;
        }
        w->stuck = !goes_on && core_are_stuck(s->core, left, left_count, &w->held_request, &w->held_member);
        snprintf(w->now, sizeof(w->now),
                 "%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".%" PRIu64 "%s", w->n.idle,
                 w->n.running, w->n.held, w->n.completed, w->n.failed, w->n.removed,
                 w->stuck ? ".stuck" : "");
        return true;
}

static bool is_done(const struct wait *w)
{
        return w->n.completed + w->n.removed == w->n.jobs;
}

static void wait_write_reply(struct server *s, struct call *c)
{
        struct wait *w = c->state;
        struct json j = {.out = &c->out};
        char held[40];

        (void)s;
        json_open(&j, '{');
        json_kbool(&j, "done", is_done(w));
        json_kint(&j, "jobs", (int64_t)w->n.jobs);
        json_kint(&j, "finished", (int64_t)(w->n.completed + w->n.removed));
        json_kint(&j, "succeeded", (int64_t)(w->n.completed - w->n.failed));
        json_kint(&j, "failed", (int64_t)w->n.failed);
        json_kint(&j, "held", (int64_t)w->n.held);
        json_kint(&j, "running", (int64_t)w->n.running);
        json_kint(&j, "idle", (int64_t)w->n.idle);
        json_kint(&j, "removed", (int64_t)w->n.removed);
        json_kint(&j, "handled", (int64_t)w->n.handled);
        if (w->stuck) {
                snprintf(held, sizeof(held), "%" PRIu64 ".%" PRIu32, w->held_request, w->held_member);
                json_kstrz(&j, "stuck_on", held);
        }
        json_kstrz(&j, "seen", w->now);
        json_close(&j, '}');
        call_reply(c);
}

static int wait_on_row(void *arg, uint64_t row, const struct past_job *h)
{
        struct failures *f = arg;

        (void)row;
        f->count += set_has(f->members, h->member) && h->state == JOB_COMPLETED && h->exit_code != 0;
        return 0;
}

static void wait_ask_reader(struct server *s, struct call *c);

/* Reader thread: finds out which of the single jobs have failed, in slices, because other calls read too. */
static void read_failures(struct server *s, struct call *c)
{
        struct wait *w = c->state;
        int64_t end_ns = clock_mono_ns() + SLICE_NS;
        struct err err = {0};

        for (; w->at < w->ids.count; w->at++, w->member = 0) {
                const struct id *id = &w->ids.items[w->at];
                struct failures f = {.members = &id->members};

                while (id->some && (w->member = set_next(&id->members, w->member)) != SET_END) {
                        struct store_query q = {.request = id->request,
                                                .has_member = true,
                                                .member = (uint32_t)w->member,
                                                .member_end = (uint32_t)w->member + RANGE_MEMBERS};

                        if (clock_mono_ns() > end_ns) {
                                w->n.failed += f.count;
                                call_io(c, wait_ask_reader);
                                return;
                        }
                        if (store_history_query(s->store, &q, wait_on_row, &f, &err) != 0) {
                                call_fail_err(c, 500, "store", &err);
                                return;
                        }
                        w->member = q.member_end;
                }
                w->n.failed += f.count;
        }
        call_io(c, wait_write_reply);
}

static void wait_ask_reader(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, read_failures);
}

static void read_counts(struct server *s, struct call *c)
{
        struct wait *w = c->state;
        int64_t now = clock_boot_ms();
        bool changed;

        if (!count_all(s, c))
                return;
        changed = strcmp(w->seen, w->now) != 0;
        c->when = TURN_DURABLE;
        if (is_done(w))
                call_io(c, w->some && w->n.completed ? wait_ask_reader : wait_write_reply);
        else if (now >= w->deadline_ms || (changed && (!*w->seen || now - w->came_ms >= WAIT_PACE_MS)))
                call_io(c, wait_write_reply);
        else if (changed)
                waits_park(s, c, w->some && w->n.jobs > SOME_JOBS ? NULL : &w->ids,
                           w->came_ms + WAIT_PACE_MS - now, read_counts);
        else
                waits_park(s, c, &w->ids, w->deadline_ms - now, read_counts);
}

void api_wait(struct server *s, struct call *c)
{
        struct wait *w = call_state(c, sizeof(*w), wait_state_free);
        struct str seen = call_query(c, "seen");
        uint64_t timeout_ms = 30000;
        struct err err = {0};

        (void)s;
        if (!call_number(c, "timeout_ms", WAIT_MAX_MS, &timeout_ms))
                return;
        if (ids_parse(&w->ids, call_query(c, "ids"), &err) != 0) {
                call_fail_err(c, 400, "bad_id", &err);
                return;
        }
        ids_merge(&w->ids);
        for (size_t i = 0; i < w->ids.count; i++)
                w->some |= w->ids.items[i].some;
        snprintf(w->seen, sizeof(w->seen), STR_FMT, STR_ARG(str_head(seen, WAIT_SEEN_MAX - 1)));
        w->came_ms = clock_boot_ms();
        w->deadline_ms = w->came_ms + (int64_t)timeout_ms;
        call_core(c, read_counts);
}
