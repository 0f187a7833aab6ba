#include "core/eta_play.h"

#include "base/mem.h"
#include "classad/match.h"
#include "core/gang.h"
#include "core/order.h"

#define EXACT_MAX   300u /* buckets that are placed; those behind follow at the common rate */
#define BUCKETS_MAX 20000u
#define FIRST_FEW   4u /* jobs of a bucket that are placed one by one */
#define FAR_MS      (365 * 86400000LL)

void eta_lanes_deinit(struct eta_lanes *e)
{
        for (size_t i = 0; i < e->count; i++)
                lane_deinit(&e->v[i]);
        e->count = 0;
}

static void make_lanes(struct core *c, struct eta_lanes *e)
{
        size_t agents, all = 0, every, at = 0;
        struct core_agent **sorted = agents_sorted(c, &agents);

        eta_lanes_deinit(e);
        for (size_t i = 0; i < agents; i++)
                for (struct queue *q = sorted[i]->queues; q; q = q->next)
                        all += sorted[i]->connected && q->ad;
        every = all / ETA_LANES_MAX + 1;
        for (size_t i = 0; i < agents; i++)
                for (struct queue *q = sorted[i]->queues; q; q = q->next)
                        if (sorted[i]->connected && q->ad && at++ % every == 0 && e->count < ETA_LANES_MAX)
                                lane_init(c, &e->v[e->count++], q);
        e->scale = e->count ? (double)all / (double)e->count : 1;
        free(sorted);
}

bool eta_suits(struct core *c, const struct class *k, const struct queue *q, const struct ad *whole)
{
        bool yes;

        if (!queue_allows_owner(q, k->owner) || k->leaks || (k->labels & ~q->agent->cleared))
                return false;
        yes = match_one_way(&c->eval, k->ad, whole) &&
              (q->job_specific || match_one_way(&c->eval, whole, k->ad));
        eval_reset(&c->eval);
        return yes;
}

static void find_fits(struct core *c, struct eta_lanes *e, const struct class *k, int64_t cpus,
                      struct eta_fit *f)
{
        *f = (struct eta_fit){.class = k};
        for (size_t i = 0; i < e->count && f->count < ETA_FITS_MAX; i++) {
                struct lane *l = &e->v[i];

                if (l->cpus < cpus)
                        continue;
                if (!l->whole)
                        l->whole = queue_whole_ad(c, l->queue);
                if (eta_suits(c, k, l->queue, l->whole))
                        f->lanes[f->count++] = (uint16_t)i;
        }
}

/* Places one job where it ends soonest; when it starts, or 0. */
static int64_t place(struct core *c, struct eta_lanes *e, const struct eta_fit *f, const struct part *p,
                     uint32_t member, int64_t *ret_run_ms)
{
        struct lane *best = NULL;
        size_t best_step = 0, step = 0;
        int64_t best_end = INT64_MAX, best_at = 0;
        struct core_cost best_cost = {0}, cost;

        for (size_t i = 0; i < f->count; i++) {
                struct lane *l = &e->v[f->lanes[i]];
                int64_t at;

                cost_of(c, p, member, l->queue, &cost);
                at = lane_find(l, p->template->cpus, cost.total_ms - cost.price_ms, &step);
                if (at && at + cost.total_ms < best_end) {
                        best_end = at + cost.total_ms;
                        best_at = at;
                        best = l;
                        best_step = step;
                        best_cost = cost;
                }
        }
        if (!best)
                return 0;
        lane_take(best, best_step, best_at, p->template->cpus, best_cost.total_ms - best_cost.price_ms);
        *ret_run_ms = best_cost.run_ms;
        return best_at + best_cost.fetch_ms + best_cost.image_ms;
}

void eta_follow(struct eta_lanes *e, const struct eta_fit *f, const struct part *p, struct bucket *b,
                uint64_t left, int64_t last)
{
        uint64_t slots = 0;

        for (size_t i = 0; i < f->count; i++)
                slots += eta_slots(e->v[f->lanes[i]].queue, p->template->cpus);
        if (f->count == ETA_FITS_MAX)
                slots = (uint64_t)((double)slots * (double)e->count / ETA_FITS_MAX);
        slots = (uint64_t)((double)slots * e->scale);
        b->eta_step_ms = b->eta_run_ms / (float)(slots ? slots : 1);
        for (size_t i = 0; i < f->count; i++) {
                struct lane *l = &e->v[f->lanes[i]];
                int64_t until = last + (int64_t)((double)b->eta_step_ms * (double)left);

                if (l->busy_ms < until)
                        l->busy_ms = until < last + FAR_MS ? until : last + FAR_MS;
        }
}

static void play_bucket(struct core *c, struct eta_lanes *e, struct bucket *b, struct eta_fit *f)
{
        const struct part *p = &b->request->parts[b->part];
        uint64_t n = set_count(&b->idle), placed = 0;
        int64_t at = 0, last = 0, run_ms = 0;

        if (f->class != b->class)
                find_fits(c, e, b->class, p->template->cpus, f);
        b->eta_start_ms = 0;
        b->eta_step_ms = 0;
        if (gang_class(b->class)) {
                eta_play_sets(c, e, b, f);
                return;
        }
        for (uint64_t m = set_first(&b->idle); placed < FIRST_FEW && m != SET_END; placed++) {
                at = place(c, e, f, p, (uint32_t)m, &run_ms);
                b->eta_run_ms = (float)run_ms;
                if (!at)
                        return;
                if (!b->eta_start_ms)
                        b->eta_start_ms = at;
                last = at > last ? at : last;
                m = set_next(&b->idle, m + 1);
        }
        if (n > placed)
                eta_follow(e, f, p, b, n - placed, last);
        else if (n > 1)
                b->eta_step_ms = (float)(last - b->eta_start_ms) / (float)(n - 1);
}

/* A bucket behind those that were placed: as long as the processors need for all before it. */
static void play_far(struct core *c, struct bucket *b, int64_t from, double *work_ms, double cpus)
{
        const struct part *p = &b->request->parts[b->part];
        double own;

        own = (double)estimate_run_ms(c, p, NULL, NULL);
        b->eta_run_ms = (float)own;
        own *= (double)p->template->cpus;
        b->eta_start_ms = cpus > 0 ? from + (int64_t)(*work_ms / cpus) : 0;
        b->eta_step_ms = cpus > 0 ? (float)(own / cpus) : 0;
        *work_ms += own * (double)set_count(&b->idle);
}

static int by_order(const void *x, const void *y)
{
        const struct bucket *a = *(struct bucket *const *)x, *b = *(struct bucket *const *)y;

        return order_bucket_before(a, b) ? -1 : order_bucket_before(b, a);
}

static size_t waiting_buckets(const struct core *c, struct bucket ***ret)
{
        struct bucket **v = NULL;
        size_t n = 0, cap = 0;

        for (struct request *r = c->first; r && n < BUCKETS_MAX; r = r->next)
                for (size_t i = 0; r->idle && i < r->bucket_count; i++)
                        if (r->buckets[i]->class && set_count(&r->buckets[i]->idle)) {
                                MEM_GROW(v, cap, n + 1);
                                v[n++] = r->buckets[i];
                        }
        if (n > 1)
                qsort(v, n, sizeof(struct bucket *), by_order);
        *ret = v;
        return n;
}

void eta_play(struct core *c, struct eta_lanes *e, uint32_t pass,
              void (*fn)(void *arg, const struct bucket *b), void *arg)
{
        double work_ms = 0, cpus = 0;
        struct eta_fit fit = {0};
        struct bucket **buckets;
        int64_t from = c->now_ms;
        size_t n;

        make_lanes(c, e);
        n = waiting_buckets(c, &buckets);
        for (size_t i = 0; i < n; i++) {
                struct bucket *b = buckets[i];
                bool first = b->eta_pass == 0;

                if (i == EXACT_MAX)
                        for (size_t k = 0; k < e->count; k++)
                                cpus += (double)e->v[k].cpus * e->scale;
                if (i < EXACT_MAX) {
                        play_bucket(c, e, b, &fit);
                        from = b->eta_start_ms > from ? b->eta_start_ms : from;
                } else {
                        play_far(c, b, from, &work_ms, cpus);
                }
                b->eta_pass = pass;
                if (first && b->eta_start_ms)
                        fn(arg, b);
        }
        free(buckets);
}
