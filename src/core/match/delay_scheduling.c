#include "core/match/delay_scheduling.h"

#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/data/inputs.h"
#include "core/estimate/busy.h"
#include "core/match/matching.h"
#include "core/match/overrun.h"
#include "core/match/policy.h"
#include "core/model/core_parts.h"
#include "core/model/pending_match.h"
#include "core/model/place_wait.h"
#include "core/model/suits.h"

#define WORTH_MS    2000    /* a job does not wait to save less than this */
#define HOLDERS_MAX 16u     /* places compared for one job: those that hold its largest file or receive it */
#define WAITS_MAX   10000u  /* jobs of one request that may wait */
#define LATE_MS     3600000 /* jobs idle for longer go in their order, wherever their files are */
#define AGAIN_MS    10000   /* interval at which waiting jobs are looked at again */

static int64_t longest_wait(const struct core *c, const struct part *p)
{
        return p->job_template->better_wait_ms >= 0 ? p->job_template->better_wait_ms
                                                    : c->config.better_wait_ms;
}

/* Returns the job's record of waiting, made when it has none. NULL: WAITS_MAX jobs of the request wait. */
static struct place_wait *wait_get(struct core *c, struct request *r, uint32_t member)
{
        struct place_wait *w = place_wait_of(r, member);

        if (w)
                return w;
        if (!request_cold(r)->waits)
                request_cold_make(r)->waits = idmap_new();
        if (idmap_count(request_cold(r)->waits) == WAITS_MAX)
                return NULL;
        w = mem_new(struct place_wait);
        w->since_ms = c->steady_ms;
        idmap_put(request_cold(r)->waits, member, w);
        return w;
}

struct missing {
        const struct core_agent *agent;
        uint64_t bytes; /* size of the largest file that the place does not hold */
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

/* Returns whether the queue would take the class if it were empty. */
static bool suits(struct core *c, const struct job_class *k, struct queue *q)
{
        struct ad *whole;
        bool yes;

        whole = queue_whole_ad(c, q);
        yes = suits_class(c, k, q, whole);
        ad_free(whole);
        return yes;
}

/* Returns the number of waiting jobs that go to the queue before this one (NULL: one that does not wait yet).
 */
static uint32_t promised(const struct queue *q, const struct place_wait *w)
{
        uint32_t others = w && w->queue == q ? q->promised - 1 : q->promised;

        return w && w->queue == q && w->before < others ? w->before : others;
}

/* Returns the busy queue of this agent where the job would end soonest, before `limit` and with a bounded
 * wait. */
static struct queue *best_queue(struct core *c, const struct part *p, uint32_t member,
                                const struct place_wait *w, const struct core_agent *a, int64_t longest,
                                int64_t here_ms, int64_t *limit)
{
        int64_t waited = w ? c->steady_ms - w->since_ms : 0;
        struct queue *found = NULL;

        for (struct queue *q = a->queues; q; q = q->next) {
                struct core_cost cost;
                int64_t wait;

                if (!q->ad || (q->offers && q->jobs_left > 0 && q->cpus > 0))
                        continue; /* this place was compared before the one at hand */
                wait = busy_wait_ms(c, q, promised(q, w));
                if (wait > longest)
                        continue;
                cost_of(c, p, member, q, &cost);
                if (waited > here_ms - cost.total_ms)
                        continue;
                cost_wait(&cost, wait);
                if (cost.total_ms < *limit) {
                        *limit = cost.total_ms;
                        found = q;
                }
        }
        return found;
}

/* Returns the busy place for which the job should wait; NULL: none is worth it. */
static struct queue *best_busy(struct core *c, const struct job_class *k, const struct bucket *b,
                               uint32_t member, const struct queue *q, int64_t longest)
{
        const struct part *p = request_part_at(b->request, b->part);
        const struct place_wait *w = place_wait_of(b->request, member);
        struct missing missing = {.agent = q->agent};
        struct queue *best = NULL;
        struct core_cost here;
        /* All jobs have just begun at places that receive the file now, so their room is predicted from run
         * times alone. */
        struct idmap *const where[] = {c->data->files, c->data->inflight};
        int64_t limit;

        cost_of(c, p, member, q, &here);
        if (cost_input_ms(&here) < WORTH_MS)
                return NULL;
        inputs_each(c, p->inputs, member, find_missing, &missing);
        limit = here.total_ms - (here.total_ms / 10 > WORTH_MS ? here.total_ms / 10 : WORTH_MS);
        for (int i = 0; missing.bytes && i < (here.run_known ? 2 : 1); i++) {
                const struct file *f = where[i] ? idmap_get(where[i], missing.file) : NULL;

                for (uint32_t n = 0; f && n < f->count && n < HOLDERS_MAX; n++) {
                        struct core_agent *a = f->holders[n];
                        struct queue *found =
                                agent_takes_jobs(a) && a != q->agent
                                        ? best_queue(c, p, member, w, a, longest, here.total_ms, &limit)
                                        : NULL;

                        if (found && suits(c, k, found))
                                best = found;
                }
        }
        return best;
}

bool delay_scheduling_waits(struct core *c, struct job_class *k, const struct bucket *b, uint32_t member,
                            struct queue *q)
{
        const struct part *p = request_part_at(b->request, b->part);
        int64_t longest = longest_wait(c, p);
        uint64_t steps = core_steps(c);
        struct queue *best;
        struct place_wait *w;

        if (policy_of(c, p)->placement != CORE_PLACE_COST || longest <= 0 ||
            (!c->data->files && !c->data->inflight) || !p->inputs)
                return false;
        if (!overrun_may_look(c, k))
                return false;
        best = best_busy(c, k, b, member, q, longest);
        overrun_charge(c, k, steps);
        w = best ? wait_get(c, b->request, member) : place_wait_of(b->request, member);
        if (!w)
                return false;
        place_wait_for(w, c->steady_ms - w->since_ms < longest ? best : NULL);
        if (!w->queue)
                return false;
        c->matching->passed_over++;
        k->passed_over = true;
        if (c->matching->delay_due_ms == 0 || w->since_ms + longest < c->matching->delay_due_ms)
                c->matching->delay_due_ms = w->since_ms + longest;
        if (c->steady_ms + AGAIN_MS < c->matching->delay_due_ms)
                c->matching->delay_due_ms = c->steady_ms + AGAIN_MS;
        return true;
}

bool delay_scheduling_is_late(const struct core *c, const struct bucket *b)
{
        return c->now_ms - b->request->submitted_ms > LATE_MS;
}

int64_t delay_scheduling_tick(struct core *c)
{
        if (c->matching->delay_due_ms == 0)
                return INT64_MAX;
        if (c->steady_ms < c->matching->delay_due_ms)
                return c->matching->delay_due_ms - c->steady_ms;
        c->matching->delay_due_ms = 0;
        for (struct request *r = c->requests->first; r; r = r->next)
                for (size_t i = 0; request_cold(r)->waits && i < r->bucket_count; i++)
                        if (set_count(&r->buckets[i]->idle))
                                job_class_look_again(c, r->buckets[i]->job_class);
        return INT64_MAX;
}
