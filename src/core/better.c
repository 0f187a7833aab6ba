#include "core/better.h"

#include "core/busy.h"
#include "core/state.h"

#define WORTH_MS    2000    /* nobody waits to save less than this */
#define HOLDERS_MAX 16u     /* places looked at for one job */
#define WAITS_MAX   10000u  /* jobs of one request that may wait */
#define LATE_MS     3600000 /* after an hour jobs go in their order, wherever their files are */
#define AGAIN_MS    10000   /* how often those that wait are looked at again */

static int64_t longest_wait(const struct core *c, const struct part *p)
{
        return p->template->better_wait_ms >= 0 ? p->template->better_wait_ms : c->config.better_wait_ms;
}

/* Since when it waits; 0: too many others do. */
static int64_t waits_since(struct core *c, struct request *r, uint32_t member)
{
        void *since;

        if (!r->waits)
                r->waits = idmap_new();
        since = idmap_get(r->waits, member);
        if (since)
                return (int64_t)(intptr_t)since;
        if (idmap_count(r->waits) == WAITS_MAX)
                return 0;
        idmap_put(r->waits, member, (void *)(intptr_t)c->now_ms);
        return c->now_ms;
}

struct missing {
        const struct core_agent *agent;
        uint64_t bytes; /* of the largest file that it does not hold */
        uint64_t file;
};

static bool find_missing(void *arg, const struct input *f)
{
        struct missing *m = arg;

        if (f->bytes > m->bytes && !agent_holds(m->agent, f->id)) {
                m->bytes = f->bytes;
                m->file = f->id;
        }
        return true;
}

/* Would it take the class if it had nothing to do? */
static bool suits(struct core *c, const struct class *k, struct queue *q)
{
        struct ad *whole;
        bool yes;

        whole = queue_whole_ad(c, q);
        yes = eta_suits(c, k, q, whole);
        ad_free(whole);
        return yes;
}

static uint32_t promised(const struct core *c, const struct queue *q)
{
        return q->promised_pass == c->pass ? q->promised : 0;
}

/* The busy queue of this agent where the job would end soonest, before `limit` and with a bounded wait. */
static struct queue *best_queue(struct core *c, const struct part *p, uint32_t member,
                                const struct core_agent *a, int64_t longest, int64_t *limit)
{
        struct queue *found = NULL;

        for (struct queue *q = a->queues; q; q = q->next) {
                struct core_cost cost;
                int64_t wait;

                if (!q->ad || (q->offers && q->jobs_left > 0 && q->cpus > 0))
                        continue; /* it was asked before the one at hand */
                wait = busy_wait_ms(c, q, promised(c, q));
                if (wait > longest)
                        continue;
                cost_of(c, p, member, q, &cost);
                if (cost.total_ms + wait < *limit) {
                        *limit = cost.total_ms + wait;
                        found = q;
                }
        }
        return found;
}

bool better_elsewhere(struct core *c, const struct class *k, const struct bucket *b, uint32_t member,
                      struct queue *q)
{
        const struct part *p = &b->request->parts[b->part];
        struct missing missing = {.agent = q->agent};
        int64_t longest = longest_wait(c, p), limit, since;
        struct queue *best = NULL;
        const struct file *f;
        struct core_cost here;

        if (c->config.placement != CORE_PLACE_COST || longest <= 0 || !c->files || !p->inputs)
                return false;
        cost_of(c, p, member, q, &here);
        if (here.fetch_ms + here.image_ms < WORTH_MS)
                return false;
        inputs_each(c, p->inputs, member, find_missing, &missing);
        f = missing.bytes ? idmap_get(c->files, missing.file) : NULL;
        limit = here.total_ms - (here.total_ms / 10 > WORTH_MS ? here.total_ms / 10 : WORTH_MS);
        for (uint32_t i = 0; f && i < f->count && i < HOLDERS_MAX; i++) {
                struct queue *found = f->holders[i]->connected && f->holders[i] != q->agent
                                              ? best_queue(c, p, member, f->holders[i], longest, &limit)
                                              : NULL;

                if (found && suits(c, k, found))
                        best = found;
        }
        if (!best)
                return false;
        since = waits_since(c, b->request, member);
        if (c->now_ms - since >= longest)
                return false;
        best->promised = promised(c, best) + 1;
        best->promised_pass = c->pass;
        if (c->better_due_ms == 0 || since + longest < c->better_due_ms)
                c->better_due_ms = since + longest;
        if (c->now_ms + AGAIN_MS < c->better_due_ms)
                c->better_due_ms = c->now_ms + AGAIN_MS;
        return true;
}

bool better_is_late(const struct core *c, const struct bucket *b)
{
        return c->now_ms - b->request->submitted_ms > LATE_MS;
}

void better_pass_begins(struct core *c)
{
        c->pass++;
}

void better_given(struct request *r, const struct set *members)
{
        if (!r->waits)
                return;
        SET_FOREACH (members, m)
                idmap_take(r->waits, m);
        if (idmap_count(r->waits) > 0)
                return;
        idmap_free(r->waits);
        r->waits = NULL;
}

int64_t better_tick(struct core *c)
{
        if (c->better_due_ms == 0)
                return INT64_MAX;
        if (c->now_ms < c->better_due_ms)
                return c->better_due_ms - c->now_ms;
        c->better_due_ms = 0;
        for (struct request *r = c->first; r; r = r->next)
                for (size_t i = 0; r->waits && i < r->bucket_count; i++)
                        if (set_count(&r->buckets[i]->idle))
                                class_look_again(c, r->buckets[i]->class);
        return INT64_MAX;
}
