/* The jobs of an account are one stream, in the order of the match: by points without fair share, then by
 * submission. eta_share.h tells how streams share the pool. Without fair share there is one stream. */
#include "core/forecast/eta_turn.h"

#include <math.h>

#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/estimate/estimate.h"
#include "core/fairness/order.h"
#include "core/model/core_parts.h"
#include "core/model/precedence.h"

#define BUCKETS_MAX 20000u
#define RUN         16u /* length of runs that are sorted at once */

enum stage { GATHER, BY_STREAM, ADD_UP, FLOW, BY_START, READY };

static double fair_share(const struct core *c)
{
        return c->config.weights.fair_share;
}

static double stream_standing(const struct core *c, const struct eta_stream *s)
{
        return -fair_share(c) * (s->lately + s->now) / s->part;
}

/* ---- demand */

static void stream_init(struct core *c, struct eta_stream *s, const struct account *a, bool asked)
{
        bool wants = a->ready > 0 && a->part > 0;

        *s = (struct eta_stream){.part = wants ? a->part : 1.0 / (c->fairness->wanting + 1),
                                 .now = (double)a->rate / 1000};
        /* An account that is only asked about is not among those over which others' usage is spread. */
        s->lately = asked || !wants ? account_mean(c->shares, a, c->now_ms) : a->lately;
        if (!(s->part > 0))
                s->part = 1;
}

static uint32_t stream_of(struct eta_turns *t, const struct account *a)
{
        struct core *c = t->core;
        uint64_t key = fair_share(c) > 0 ? a->serial : 1;
        uintptr_t n = (uintptr_t)idmap_get(t->accounts, key);

        if (!n) {
                bool asked = t->also && t->also->job_class->account->ready == 0;

                MEM_GROW(t->streams, t->stream_cap, t->stream_count + 1);
                stream_init(c, &t->streams[t->stream_count++], a, asked);
                n = t->stream_count;
                idmap_put(t->accounts, key, (void *)n);
        }
        return (uint32_t)n - 1;
}

/* Returns the processors that the limits of the bucket's jobs leave them; limits that depend on the place
 * are not known yet. */
static double cap_of(const struct job_class *k, const struct part *p, double cpus)
{
        double most = INFINITY;

        for (size_t i = 0; k->draws && i < k->draws->count; i++) {
                const struct draw *d = &k->draws->v[i];
                int64_t jobs = d->limit->max / d->units;

                if (d->limit->max != LIMIT_NONE && cpus * (double)jobs < most)
                        most = cpus * (double)jobs;
        }
        if (p->job_template->jobs_max != INT64_MAX && cpus * (double)p->job_template->jobs_max < most)
                most = cpus * (double)p->job_template->jobs_max;
        return most;
}

static double own_cap(const struct job_class *k, double cpus)
{
        return k->user->max != LIMIT_NONE ? cpus * (double)k->user->max : INFINITY;
}

static void add_turn(struct eta_turns *t, struct bucket *b, uint64_t jobs)
{
        struct core *c = t->core;
        const struct job_class *k = b->job_class;
        const struct part *p = request_part_at(b->request, b->part);
        int64_t run_ms = estimate_shown_ms(c, p, 1, NULL);
        struct eta_turn *e;

        MEM_GROW(t->v, t->cap, t->count + 1);
        e = &t->v[t->count++];
        *e = (struct eta_turn){.bucket = b,
                               .jobs = jobs,
                               .start = INFINITY,
                               .rest = INFINITY,
                               .end = INFINITY,
                               .request = b->request->id,
                               .job_class = k->index.serial,
                               .account = k->account->serial,
                               .priority = b->priority,
                               .due_s = order_bucket_due_s(b),
                               .part = b->part,
                               .stream = stream_of(t, k->account),
                               .own = order_own_points(c, b),
                               .points = b->points,
                               .cpus = p->job_template->cpus > 0 ? (double)p->job_template->cpus : 0.01};
        t->request_limits |= p->job_template->jobs_max != INT64_MAX;
        e->cap = cap_of(k, p, e->cpus);
        e->own += order_waited_points(c, k->account, b->priority, e->due_s);
        e->own_cap = own_cap(k, e->cpus);
        e->work = e->cpus * (double)jobs * (double)(run_ms > 0 ? run_ms : 1);
        e->standing = e->own;
        if (fair_share(c) > 0)
                e->standing += stream_standing(c, &t->streams[e->stream]);
}

/* Meta jobs have no turns, since each has a reservation, or will have one soon. */
static bool has_turn(const struct eta_turns *t, const struct bucket *b)
{
        return b != t->also && b->job_class && !b->job_class->job_template->meta.wanted &&
               set_count(&b->idle) > 0;
}

static unsigned gather(struct eta_turns *t)
{
        struct request *r = t->next;
        unsigned cost = 1;

        t->next = r->next;
        for (size_t i = 0; r->idle && i < r->bucket_count; i++)
                if (has_turn(t, r->buckets[i])) {
                        add_turn(t, r->buckets[i], set_count(&r->buckets[i]->idle));
                        cost += 5;
                }
        if (t->count >= BUCKETS_MAX)
                t->next = NULL;
        return cost;
}

void eta_turns_begin(struct eta_turns *t, struct core *c, struct bucket *also)
{
        *t = (struct eta_turns){.core = c, .also = also, .next = c->requests->first, .accounts = idmap_new()};
        if (also)
                add_turn(t, also,
                         set_count(&also->idle) ? set_count(&also->idle)
                                                : request_part_at(also->request, also->part)->count);
}

void eta_turns_bucket_gone(struct eta_turns *t, const struct bucket *b)
{
        size_t from = t->also != NULL, to = t->count;

        if (b == t->also)
                return;
        while (from < to) { /* the first turn of its request */
                size_t mid = from + (to - from) / 2;

                if (t->v[mid].request < b->request->id)
                        from = mid + 1;
                else
                        to = mid;
        }
        for (; from < t->count && t->v[from].request == b->request->id; from++)
                if (t->v[from].bucket == b)
                        t->v[from].bucket = NULL;
}

void eta_turns_request_gone(struct eta_turns *t, const struct request *r)
{
        if (t->next == r)
                t->next = r->next;
}

/* ---- sorting */

typedef int by_fn(const struct eta_turn *a, const struct eta_turn *b);

static int by_order(const struct eta_turn *a, const struct eta_turn *b)
{
        if (a->standing != b->standing)
                return a->standing > b->standing ? -1 : 1;
        if (a->account != b->account)
                return a->account < b->account ? -1 : 1;
        if (a->points != b->points)
                return a->points > b->points ? -1 : 1;
        if (a->priority != b->priority)
                return a->priority > b->priority ? -1 : 1;
        if (a->due_s != b->due_s)
                return a->due_s < b->due_s ? -1 : 1;
        if (a->request != b->request)
                return a->request < b->request ? -1 : 1;
        return (a->part > b->part) - (a->part < b->part);
}

static int by_stream(const struct eta_turn *a, const struct eta_turn *b)
{
        if (a->stream != b->stream)
                return a->stream < b->stream ? -1 : 1;
        return by_order(a, b);
}

static int eta_turn_by_start(const struct eta_turn *a, const struct eta_turn *b)
{
        if (a->start != b->start)
                return a->start < b->start ? -1 : 1;
        return by_order(a, b);
}

static size_t sort_few(struct eta_turns *t, size_t from, by_fn *by)
{
        size_t end = from + RUN < t->count ? from + RUN : t->count;

        for (size_t i = from + 1; i < end; i++) {
                uint32_t one = t->order[i];
                size_t k = i;

                for (; k > from && by(&t->v[one], &t->v[t->order[k - 1]]) < 0; k--)
                        t->order[k] = t->order[k - 1];
                t->order[k] = one;
        }
        return end;
}

static size_t merge(struct eta_turns *t, size_t from, by_fn *by)
{
        size_t mid = from + t->width < t->count ? from + t->width : t->count;
        size_t end = mid + t->width < t->count ? mid + t->width : t->count;
        size_t x = from, y = mid;

        for (size_t to = from; to < end; to++) {
                bool first = y == end || (x < mid && by(&t->v[t->order[x]], &t->v[t->order[y]]) <= 0);

                t->room[to] = t->order[first ? x++ : y++];
        }
        return end;
}

/* Merges two sorted runs of `width` in a step, so that the longest step is one pass over all. False:
 * everything is sorted. */
static bool sort_step(struct eta_turns *t, by_fn *by, unsigned *ret_cost)
{
        size_t from = t->at;

        t->at = t->width ? merge(t, from, by) : sort_few(t, from, by);
        *ret_cost = 1 + (unsigned)(t->at - from);
        if (t->at < t->count)
                return true;
        if (t->width) {
                uint32_t *sorted = t->room;

                t->room = t->order;
                t->order = sorted;
        }
        t->at = 0;
        t->width = t->width ? t->width * 2 : RUN;
        return t->width < t->count;
}

static void sort_begin(struct eta_turns *t)
{
        t->at = t->width = 0;
        if (t->order)
                return;
        t->order = mem_array(NULL, t->count + 1, sizeof(*t->order));
        t->room = mem_array(NULL, t->count + 1, sizeof(*t->room));
        for (size_t i = 0; i < t->count; i++)
                t->order[i] = (uint32_t)i;
}

/* ---- streams */

/* Sums the work in each stream; a limit on all of an account's jobs bounds its processors. */
static void add_up(struct eta_turns *t, size_t from, size_t end)
{
        struct core *c = t->core;

        for (size_t i = from; i < end; i++) {
                struct eta_turn *e = &t->v[t->order[i]];
                const struct eta_turn *before = i ? &t->v[t->order[i - 1]] : NULL;
                struct eta_stream *s = &t->streams[e->stream];

                if (!before || before->stream != e->stream) {
                        s->points = fair_share(c) > 0 ? e->own / fair_share(c) : 0;
                        s->cap = e->cap < e->own_cap ? e->cap : e->own_cap;
                } else if (e->job_class != before->job_class && e->own_cap < INFINITY) {
                        s->cap = s->cap + e->cap < e->own_cap ? s->cap + e->cap : e->own_cap;
                } else if (e->job_class != before->job_class) {
                        s->cap += e->cap;
                }
                e->before = s->work;
                s->work += e->work;
                t->stream_work += e->work;
                t->jobs_cpus += e->cpus * (double)e->jobs;
        }
}

static unsigned add_up_some(struct eta_turns *t)
{
        size_t from = t->at, end = from + 1000 < t->count ? from + 1000 : t->count;

        add_up(t, from, end);
        t->at = end;
        return 1 + (unsigned)(end - from);
}

/* ---- times */

/* Finds the jobs of the stream whose turn comes while it goes on at this rate. */
static void on_phase(void *arg, size_t stream, double at_ms, double rate, double done)
{
        struct eta_turns *t = arg;
        double had = t->done[stream];

        for (size_t *i = &t->cursor[stream]; *i < t->count && t->v[t->order[*i]].stream == stream; ++*i) {
                struct eta_turn *e = &t->v[t->order[*i]];
                double few = e->jobs > ETA_FIRST_FEW ? ETA_FIRST_FEW * e->work / (double)e->jobs : e->work;

                if (isinf(e->start) && e->before <= done)
                        e->start = at_ms + (e->before - had) / rate;
                if (isinf(e->rest) && e->before + few <= done)
                        e->rest = at_ms + (e->before + few - had) / rate;
                if (e->before + e->work > done * (1 + 1e-9))
                        break;
                e->end = at_ms + (e->before + e->work - had) / rate;
                if (isinf(e->rest))
                        e->rest = e->end;
        }
        t->done[stream] = done;
}

static void flow_begin(struct eta_turns *t, double all, double free)
{
        t->flows = true;
        t->cursor = mem_zalloc((t->stream_count + 1) * sizeof(*t->cursor));
        t->done = mem_zalloc((t->stream_count + 1) * sizeof(*t->done));
        for (size_t i = t->count; i-- > 0;)
                t->cursor[t->v[t->order[i]].stream] = i;
        eta_flow_begin(&t->flow, t->streams, t->stream_count, all, free,
                       t->jobs_cpus > 0 ? t->stream_work / t->jobs_cpus : 0);
}

/* ---- */

unsigned eta_turns_step(struct eta_turns *t, double all, double free_cpus)
{
        unsigned cost = 1;

        switch ((enum stage)t->stage) {
        case GATHER:
                if (t->next)
                        return gather(t);
                sort_begin(t);
                t->stage = BY_STREAM;
                return 1 + (unsigned)t->count / 50;
        case BY_STREAM:
                if (sort_step(t, by_stream, &cost))
                        return cost;
                t->at = 0;
                t->stage = ADD_UP;
                return cost;
        case ADD_UP:
                if (t->at < t->count)
                        return add_up_some(t);
                flow_begin(t, all, free_cpus);
                t->stage = FLOW;
                return 1 + (unsigned)(t->count / 10 + t->stream_count);
        case FLOW:
                if (eta_flow_step(&t->flow, on_phase, t))
                        return 1 + (unsigned)t->stream_count / 5;
                sort_begin(t);
                t->stage = BY_START;
                return 1;
        case BY_START:
                if (!sort_step(t, eta_turn_by_start, &cost))
                        t->stage = READY;
                return cost;
        case READY: return 0;
        }
        return 0;
}

void eta_turns_end(struct eta_turns *t)
{
        if (t->flows)
                eta_flow_end(&t->flow);
        idmap_free(t->accounts);
        free(t->v);
        free(t->order);
        free(t->room);
        free(t->streams);
        free(t->cursor);
        free(t->done);
        *t = (struct eta_turns){0};
}
