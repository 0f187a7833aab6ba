/* A class can use a queue that has room, whose agent runs this owner's jobs and is cleared for their data,
 * and where both Requirements hold. Among those the order is: higher Rank of the job, then lower cost
 * (cost.h) for the class's first job, then search order, then more free processors. */
#include "core/match/choose.h"

#include "classad/match.h"
#include "core/classes/job_class.h"
#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/estimate/estimate.h"
#include "core/gang/reserve.h"
#include "core/match/matching.h"
#include "core/match/overrun.h"
#include "core/match/policy.h"
#include "core/reservation/advance.h"

/* A class without data whose jobs run for less than this does not compare places. */
#define ALIKE_MS 2000

static bool agree(struct core *c, const struct job_class *k, const struct queue *q)
{
        if (q->job_specific)
                return match_one_way(&c->eval, k->ad, q->ad);
        return match_ads(&c->eval, k->ad, q->ad) == MATCH_YES;
}

static bool fits_and_agrees(struct core *c, struct job_class *k, struct queue *q, struct need *ret_need)
{
        uint64_t steps = core_steps(c), overruns = c->eval.overruns;
        bool yes;

        need_of(c, k, k->ad, q->ad, ret_need);
        yes = need_fits(c, ret_need, q) && reserve_allows(c, k, q, ret_need) && agree(c, k, q);
        if (core_steps(c) - steps > OVERRUN_ORDINARY || c->eval.overruns != overruns)
                overrun_looked(c, k, q, steps, overruns);
        return yes && !k->overrun && q->paused_until_ms <= c->steady_ms;
}

/* Returns whether the queue's agent has refused this class since its last offer. */
static bool was_refused(const struct job_class *k, const struct queue *q)
{
        for (unsigned i = 0; i < q->refused_count; i++)
                if (q->refused[i] == k->index.serial)
                        return true;
        return false;
}

bool choose_fits(struct core *c, struct job_class *k, struct queue *q, struct need *ret_need)
{
        c->matching->looks++;
        if (k->idle == 0 || q->jobs_left == 0 || !q->offers || !agent_is_open(q->agent, c->steady_ms) ||
            !queue_allows_owner(q, k->owner))
                return false;
        if (k->overrun || q->paused_until_ms > c->steady_ms || !overrun_may_look(c, k))
                return false;
        if (deferral_waits(c, k) || job_class_is_lost(c, k) || k->leaks || (k->labels & ~q->agent->cleared))
                return false;
        if (k->job_template->meta.wanted && !c->advances->placing.request)
                return false; /* it goes to what is reserved for it only */
        if (c->nodes.clearing.agent == q->agent && c->nodes.clearing.job_class != k->index.serial)
                return false;
        if (q->refused_count && was_refused(k, q))
                return false;
        return fits_and_agrees(c, k, q, ret_need);
}

/* ---- of several places, for a class */

bool choose_class_prefers(struct core *c, const struct job_class *k)
{
        const struct part *p;

        if (k->has_rank || c->data->ordered || policy_of_class(c, k)->spreads)
                return true;
        if (policy_of_class(c, k)->placement == CORE_PLACE_BLIND)
                return false;
        p = job_class_first_part(k);
        return p->inputs || estimate_bytes_out(p) > 0 || estimate_run_ms(c, p, NULL, NULL) >= ALIKE_MS;
}

double choose_cost(struct core *c, const struct part *p, uint32_t member, const struct queue *q)
{
        return policy_of(c, p)->cost(c, p, member, q);
}

double choose_class_cost(struct core *c, struct job_class *k, const struct part *p, uint32_t member,
                         const struct queue *q)
{
        uint64_t steps = core_steps(c);
        double cost = choose_cost(c, p, member, q);

        overrun_charge(c, k, steps);
        return cost;
}

struct candidate choose_worth(struct core *c, struct job_class *k, struct queue *q)
{
        uint64_t steps = core_steps(c), overruns = c->eval.overruns;
        struct candidate found = {
                .queue = q,
                .rank = k->has_rank ? match_rank(&c->eval, k->ad, q->ad) : 0,
                .cost = choose_cost(c, job_class_first_part(k),
                                    (uint32_t)set_first(&job_class_first_bucket(k)->idle), q),
        };

        overrun_looked(c, k, q, steps, overruns);
        return found;
}

int choose_better(const struct candidate *a, const struct candidate *b)
{
        if (a->rank != b->rank)
                return a->rank > b->rank ? -1 : 1;
        if (a->cost != b->cost)
                return a->cost < b->cost ? -1 : 1;
        if (a->queue->cpus != b->queue->cpus)
                return a->queue->cpus > b->queue->cpus ? -1 : 1;
        return (a->queue->index.serial > b->queue->index.serial) -
               (a->queue->index.serial < b->queue->index.serial);
}

static int compare_candidates(const void *x, const void *y)
{
        return choose_better(x, y);
}

void choose_sort(struct candidate *found, size_t count)
{
        if (count > 1)
                qsort(found, count, sizeof(*found), compare_candidates);
}

/* ---- of several classes, for an offer */

bool choose_offer_prefers(const struct queue *q)
{
        return q->has_rank || q->wishes[0] != CORE_WISH_NONE;
}

/* How well the class's first job meets a wish of the queue; higher is better. */
static double wish_met(struct core *c, const struct queue *q, const struct job_class *k, enum core_wish wish)
{
        struct core_cost cost;

        if (wish == CORE_WISH_LARGE_MEMORY)
                return (double)k->memory_mib;
        cost_of(c, job_class_first_part(k), (uint32_t)set_first(&job_class_first_bucket(k)->idle), q, &cost);
        return wish == CORE_WISH_SMALL_INPUT ? -(double)(cost.bytes_in - cost.bytes_held)
                                             : -(double)cost.run_ms;
}

struct liked choose_liking(struct core *c, struct queue *q, struct job_class *k, size_t turn)
{
        uint64_t steps = core_steps(c), overruns = c->eval.overruns;
        struct liked l = {
                .job_class = k,
                .rank = q->has_rank ? match_rank(&c->eval, q->ad, k->ad) : 0,
                .turn = turn,
        };

        overrun_looked(c, k, q, steps, overruns);
        for (int i = 0; i < CORE_WISHES_MAX && q->wishes[i] != CORE_WISH_NONE; i++)
                l.wishes[i] = wish_met(c, q, k, q->wishes[i]);
        return l;
}

static int more_liked(const void *x, const void *y)
{
        const struct liked *a = x, *b = y;

        if (a->rank != b->rank)
                return a->rank > b->rank ? -1 : 1;
        for (int i = 0; i < CORE_WISHES_MAX; i++)
                if (a->wishes[i] != b->wishes[i])
                        return a->wishes[i] > b->wishes[i] ? -1 : 1;
        return (a->turn > b->turn) - (a->turn < b->turn);
}

void choose_sort_liked(struct liked *found, size_t count)
{
        if (count > 1)
                qsort(found, count, sizeof(*found), more_liked);
}
