/* The jobs of an account are one stream, in the order of the match: points beside fair share, then as they
 * came. How the streams share the pool is eta_share.h's. Without fair share there is one stream.
 */
#include "core/eta_turn.h"

#include <math.h>

#include "base/mem.h"
#include "core/eta_share.h"
#include "core/gang.h"
#include "core/order.h"

#define BUCKETS_MAX 20000u

struct turns {
        struct core *core;
        struct eta_turn *v;
        size_t count, cap;
        struct eta_stream *streams;
        size_t stream_count, stream_cap;
        double jobs_cpus; /* of all jobs */
        /* of each stream: where it is, and how far */
        size_t *cursor;
        double *done;
};

static double fair_share(const struct core *c)
{
        return c->config.weights.fair_share;
}

static double stream_standing(const struct core *c, const struct eta_stream *s)
{
        return -fair_share(c) * (s->lately + s->now) / s->part;
}

/* ---- who wants what */

static void stream_init(struct core *c, struct eta_stream *s, const struct account *a, bool asked)
{
        bool wants = a->ready > 0 && a->part > 0;

        *s = (struct eta_stream){.part = wants ? a->part : 1.0 / (c->wanting + 1),
                                 .now = (double)a->rate / 1000};
        /* Who only asks is not counted among those that what others had is spread over. */
        s->lately = asked || !wants ? account_mean(c->shares, a, c->now_ms) : a->lately;
        if (!(s->part > 0))
                s->part = 1;
}

/* Of all limits of the bucket's jobs, how many processors they leave them; what depends on the place is not
 * known yet. */
static double cap_of(const struct class *k, const struct part *p, double cpus)
{
        double most = INFINITY;

        for (size_t i = 0; k->draws && i < k->draws->count; i++) {
                const struct draw *d = &k->draws->v[i];
                int64_t jobs = d->limit->max / d->units;

                if (d->limit->max != LIMIT_NONE && cpus * (double)jobs < most)
                        most = cpus * (double)jobs;
        }
        if (p->template->jobs_max != INT64_MAX && cpus * (double)p->template->jobs_max < most)
                most = cpus * (double)p->template->jobs_max;
        return most;
}

static double own_cap(const struct class *k, double cpus)
{
        return k->user->max != LIMIT_NONE ? cpus * (double)k->user->max : INFINITY;
}

static void add(struct turns *t, struct bucket *b, uint64_t jobs)
{
        struct eta_turn *e;

        MEM_GROW(t->v, t->cap, t->count + 1);
        e = &t->v[t->count++];
        *e = (struct eta_turn){
                .bucket = b, .jobs = jobs, .start = INFINITY, .rest = INFINITY, .end = INFINITY};
        e->own = order_own_points(t->core, b);
}

static void gather(struct turns *t, struct bucket *also)
{
        struct core *c = t->core;

        if (also)
                add(t, also, also->request->parts[also->part].count);
        for (struct request *r = c->first; r && t->count < BUCKETS_MAX; r = r->next)
                for (size_t i = 0; r->idle && i < r->bucket_count; i++)
                        if (r->buckets[i]->class && set_count(&r->buckets[i]->idle))
                                add(t, r->buckets[i], set_count(&r->buckets[i]->idle));
}

static void find_streams(struct turns *t, const struct bucket *also)
{
        struct core *c = t->core;
        bool asked = also && also->class->account->ready == 0;
        struct idmap *known = idmap_new();

        for (size_t i = 0; i < t->count; i++) {
                const struct account *a = t->v[i].bucket->class->account;
                uint64_t key = fair_share(c) > 0 ? (uintptr_t)a : 1;
                uintptr_t n = (uintptr_t)idmap_get(known, key);

                if (!n) {
                        MEM_GROW(t->streams, t->stream_cap, t->stream_count + 1);
                        stream_init(c, &t->streams[t->stream_count++], a, asked);
                        n = t->stream_count;
                        idmap_put(known, key, (void *)n);
                }
                t->v[i].stream = n - 1;
                t->v[i].standing = t->v[i].own;
                if (fair_share(c) > 0)
                        t->v[i].standing += stream_standing(c, &t->streams[n - 1]);
        }
        idmap_free(known);
}

/* ---- in a stream */

static int by_order(const struct eta_turn *a, const struct eta_turn *b)
{
        const struct account *x = a->bucket->class->account, *y = b->bucket->class->account;

        if (a->standing != b->standing)
                return a->standing > b->standing ? -1 : 1;
        if (x != y)
                return x->serial < y->serial ? -1 : 1;
        return order_bucket_before(a->bucket, b->bucket) ? -1 : order_bucket_before(b->bucket, a->bucket);
}

static int by_stream(const void *x, const void *y)
{
        const struct eta_turn *a = x, *b = y;

        if (a->stream != b->stream)
                return a->stream < b->stream ? -1 : 1;
        return by_order(a, b);
}

/* Work adds up in each stream; a limit that all of an account's jobs are under bounds what it takes. */
static void add_up(struct turns *t)
{
        struct core *c = t->core;
        const struct bucket *before = NULL;

        for (size_t i = 0; i < t->count; i++) {
                struct eta_turn *e = &t->v[i];
                const struct bucket *b = e->bucket;
                const struct part *p = &b->request->parts[b->part];
                struct eta_stream *s = &t->streams[e->stream];
                int64_t run_ms = estimate_run_ms(c, p, NULL, NULL);
                double cpus = p->template->cpus > 0 ? (double)p->template->cpus : 0.01;
                double cap = cap_of(b->class, p, cpus), own = own_cap(b->class, cpus);

                if (!before || t->v[i - 1].stream != e->stream) {
                        s->points = fair_share(c) > 0 ? e->own / fair_share(c) : 0;
                        s->cap = cap < own ? cap : own;
                } else if (b->class != before->class && own < INFINITY) {
                        s->cap = s->cap + cap < own ? s->cap + cap : own;
                } else if (b->class != before->class) {
                        s->cap += cap;
                }
                before = b;
                e->before = s->work;
                e->work = cpus * (double)e->jobs * (double)(run_ms > 0 ? run_ms : 1);
                s->work += e->work;
                t->jobs_cpus += cpus * (double)e->jobs;
        }
}

/* ---- when */

/* The stream goes on at this rate: which of its jobs come to their turn meanwhile? */
static void on_phase(void *arg, size_t stream, double at_ms, double rate, double done)
{
        struct turns *t = arg;
        double had = t->done[stream];

        for (size_t *i = &t->cursor[stream]; *i < t->count && t->v[*i].stream == stream; ++*i) {
                struct eta_turn *e = &t->v[*i];
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

static int by_start(const void *x, const void *y)
{
        const struct eta_turn *a = x, *b = y;

        if (a->start != b->start)
                return a->start < b->start ? -1 : 1;
        return by_order(a, b);
}

static void flow(struct turns *t, double all, double free)
{
        double work = 0;

        t->cursor = mem_zalloc((t->stream_count + 1) * sizeof(*t->cursor));
        t->done = mem_zalloc((t->stream_count + 1) * sizeof(*t->done));
        for (size_t i = t->count; i-- > 0;)
                t->cursor[t->v[i].stream] = i;
        for (size_t i = 0; i < t->stream_count; i++)
                work += t->streams[i].work;
        eta_share_flow(t->streams, t->stream_count, all, free, t->jobs_cpus > 0 ? work / t->jobs_cpus : 0,
                       on_phase, t);
}

size_t eta_turns(struct core *c, double all, double free_cpus, struct bucket *also, struct eta_turn **ret)
{
        struct turns t = {.core = c};

        gather(&t, also);
        find_streams(&t, also);
        if (t.count > 1)
                qsort(t.v, t.count, sizeof(*t.v), by_stream);
        add_up(&t);
        flow(&t, all, free_cpus);
        if (t.count > 1)
                qsort(t.v, t.count, sizeof(*t.v), by_start);
        free(t.streams);
        free(t.cursor);
        free(t.done);
        *ret = t.v;
        return t.count;
}
