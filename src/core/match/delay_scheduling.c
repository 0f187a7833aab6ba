#include "core/match/delay_scheduling.h"

#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/data/inputs.h"
#include "core/estimate/busy.h"
#include "core/match/matching.h"
#include "core/match/overrun.h"
#include "core/match/policy.h"
#include "core/model/core_parts.h"
#include "core/model/cost_class.h"
#include "core/model/pending_match.h"
#include "core/model/place_wait.h"
#include "core/model/suits.h"

#define WORTH_MS    2000    /* a job does not wait to save less than this */
#define HOLDERS_MAX 16u     /* places compared for one job: those that hold its largest file or receive it */
#define NEARER_MAX  4u      /* places compared of each cost class that gets its files sooner */
#define WAITS_MAX   10000u  /* jobs of one request that may wait */
#define LATE_MS     3600000 /* jobs idle for longer go in their order, wherever their files are */
#define AGAIN_MS    10000   /* interval at which waiting jobs are looked at again */

int64_t delay_scheduling_longest_ms(const struct core *c, const struct part *p)
{
        int64_t ms = p->job_template->better_wait_ms >= 0 ? p->job_template->better_wait_ms
                                                          : c->config.better_wait_ms;

        return ms > 0 ? ms : 0;
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

/* A search for the busy place for which a job should wait. */
struct busy_search {
        struct core *core;
        const struct job_class *job_class;
        const struct part *part;
        uint32_t member;
        const struct place_wait *wait; /* NULL: it does not wait yet */
        int64_t longest, waited, here_ms;
        int64_t limit; /* the result must come sooner than that */
        struct queue *best;
        unsigned looked; /* places compared */
};

/* Compares a busy queue with the best so far: the job must end sooner there, after a bounded wait. */
static void compare_busy(struct busy_search *s, struct queue *q)
{
        struct core_cost cost;
        int64_t wait;

        if (!q->ad || (q->offers && q->jobs_left > 0 && q->cpus > 0))
                return; /* this place was compared before the one at hand */
        cost_of(s->core, s->part, s->member, q, &cost);
        if (s->waited > s->here_ms - cost.total_ms)
                return;
        if (cost.total_ms - cost.link_ms >= s->limit)
                return; /* even without a wait, in which the load of its links would decrease */
        wait = busy_wait_ms(s->core, q, promised(q, s->wait));
        if (wait > s->longest)
                return;
        cost_wait(&cost, wait);
        if (cost.total_ms < s->limit && suits(s->core, s->job_class, q)) {
                s->limit = cost.total_ms;
                s->best = q;
        }
}

/* Compares the places that hold a file, or receive it. */
static void compare_holders(struct busy_search *s, const struct file *f, const struct queue *here)
{
        for (uint32_t n = 0; f && n < f->count && n < HOLDERS_MAX; n++) {
                const struct core_agent *a = f->holders[n];

                if (!agent_takes_jobs(a) || a == here->agent)
                        continue;
                s->looked++;
                for (struct queue *q = a->queues; q; q = q->next)
                        compare_busy(s, q);
        }
}

/* Compares places that hold nothing of the job, but would get it sooner than the free place even if no other
 * transfers delayed it there: some of each such cost class, in turn. */
static void compare_nearer(struct busy_search *s, const struct queue *here, int64_t fetch_ms)
{
        struct core *c = s->core;
        int64_t worth_ms = s->here_ms - s->limit;
        struct cost_load load;

        if (c->data->cost_class_count < 2 || fetch_ms < worth_ms)
                return;
        cost_load_of(c, s->part, s->member, &load);
        for (unsigned i = 0; i < c->data->cost_class_count && s->looked < HOLDERS_MAX; i++) {
                struct cost_class *x = c->data->cost_classes[i];

                if (x == here->cost_class || fetch_ms - cost_load_fetch_ms(&load, x) < worth_ms)
                        continue;
                for (unsigned n = 0; n < x->users && n < NEARER_MAX; n++) {
                        struct queue *q = x->queues;

                        x->queues = q->class_next;
                        s->looked++;
                        if (agent_takes_jobs(q->agent))
                                compare_busy(s, q);
                }
        }
}

/* Returns the busy place for which the job should wait; NULL: none is worth it. */
static struct queue *best_busy(struct core *c, const struct job_class *k, const struct bucket *b,
                               uint32_t member, const struct queue *q, int64_t longest)
{
        struct busy_search s = {.core = c,
                                .job_class = k,
                                .part = request_part_at(b->request, b->part),
                                .member = member,
                                .wait = place_wait_of(b->request, member),
                                .longest = longest};
        struct missing missing = {.agent = q->agent};
        struct core_cost here;

        cost_of(c, s.part, member, q, &here);
        if (cost_input_ms(&here) < WORTH_MS)
                return NULL;
        s.waited = s.wait ? c->steady_ms - s.wait->since_ms : 0;
        s.here_ms = here.total_ms;
        s.limit = here.total_ms - (here.total_ms / 10 > WORTH_MS ? here.total_ms / 10 : WORTH_MS);
        inputs_each(c, s.part->inputs, member, find_missing, &missing);
        if (missing.bytes && c->data->files)
                compare_holders(&s, idmap_get(c->data->files, missing.file), q);
        /* All jobs have just begun at places that receive the file now, so their room is predicted from run
         * times alone. */
        if (missing.bytes && c->data->inflight && here.run_known)
                compare_holders(&s, idmap_get(c->data->inflight, missing.file), q);
        /* With no run time known, a job at least does not join others on a slow link; while it waits for one
         * of them to end, it may become known. */
        if (here.run_known || here.link_ms > 0)
                compare_nearer(&s, q, cost_input_ms(&here) - here.link_ms);
        return s.best;
}

bool delay_scheduling_waits(struct core *c, struct job_class *k, const struct bucket *b, uint32_t member,
                            struct queue *q)
{
        const struct part *p = request_part_at(b->request, b->part);
        int64_t longest = delay_scheduling_longest_ms(c, p);
        uint64_t steps = core_steps(c);
        struct queue *best;
        struct place_wait *w;

        if (policy_of(c, p)->placement != CORE_PLACE_COST || longest <= 0 || !p->inputs)
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
