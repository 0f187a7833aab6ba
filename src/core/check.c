/* The invariants of the core's state, for tests, the simulator, and `droverd --check`. */
#include "core/billing/billing.h"
#include "core/classes/job_class.h"
#include "core/data/data_state.h"
#include "core/data/space.h"
#include "core/dependency/dependency.h"
#include "core/fairness/charge.h"
#include "core/forecast/forecast.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/match/matching.h"
#include "core/meta/meta.h"
#include "core/reservation/advance.h"
#include <stdio.h>

static char sentence[256];

#define FAIL(...)                                                                                            \
        do {                                                                                                 \
                snprintf(sentence, sizeof(sentence), __VA_ARGS__);                                           \
                return sentence;                                                                             \
        } while (0)
#define ID(r) (unsigned long long)(r)->id

static const char *check_jobs(const struct core *c, const struct request *r, uint64_t *ret_active)
{
        const struct request_cold *cold = request_cold(r);
        uint32_t running = 0;
        void *value;

        *ret_active = 0;
        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);) {
                const struct job *j = value;
                bool idle = request_idle_has(r, j->member);

                if (j->request != r || j->member >= r->count)
                        FAIL("a job record of request %llu is misplaced", ID(r));
                if (job_state_has_attempt(j->state) != (j->queue != NULL))
                        FAIL("%llu.%u is %s and %s an attempt", ID(r), j->member, job_state_name(j->state),
                             j->queue ? "has" : "has not");
                if (idle != (j->state == JOB_IDLE) && !(c->config.shadow && !r->bucket_count))
                        FAIL("%llu.%u is %s and %s in the idle set", ID(r), j->member,
                             job_state_name(j->state), idle ? "is" : "is not");
                if (set_has(&cold->held, j->member) != (j->state == JOB_HELD))
                        FAIL("%llu.%u is %s: the held set says otherwise", ID(r), j->member,
                             job_state_name(j->state));
                if (set_has(&cold->left, j->member) !=
                    (set_has(&cold->completed, j->member) || set_has(&cold->removed, j->member)))
                        FAIL("%llu.%u has a record: to have ended and to be left is not the same", ID(r),
                             j->member);
                *ret_active += j->queue != NULL;
                running += job_state_runs(j->state);
        }
        if (running != r->running)
                FAIL("request %llu counts %u running jobs and has %u", ID(r), r->running, running);
        return NULL;
}

/* A job that was lost too often is held, and what waits for the end of a pause is idle and in no bucket. */
static const char *check_losses(const struct core *c, const struct request *r)
{
        const struct request_cold *cold = request_cold(r);
        void *value;

        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);) {
                const struct job *j = value;

                if (j->losses && j->losses->lost >= c->config.max_lost && j->state != JOB_HELD &&
                    j->state != JOB_REMOVED)
                        FAIL("%llu.%u was lost %u times in a row and is %s", ID(r), j->member,
                             j->losses->lost, job_state_name(j->state));
                if (set_has(&cold->delayed, j->member) && j->state != JOB_IDLE)
                        FAIL("%llu.%u waits for the end of a pause and is %s", ID(r), j->member,
                             job_state_name(j->state));
        }
        if ((set_count(&cold->delayed) > 0) != (idmap_get(c->requests->delayed, r->id) != NULL))
                FAIL("request %llu has delayed jobs, and is not where those are looked for", ID(r));
        return NULL;
}

/* A node that is drained has nothing, and one that runs a job alone nothing else. */
static const char *check_node(const struct core_agent *a)
{
        uint32_t alone = 0;

        for (const struct queue *q = a->queues; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        alone += j->alone;
        if (node_state_of(&a->node) == NODE_DRAINED && agent_attempts(a) > 0)
                FAIL("the node %s is drained and has %u attempts", a->name, agent_attempts(a));
        if (alone != a->alone)
                FAIL("the node %s counts %u jobs that run alone and has %u", a->name, a->alone, alone);
        if (!a->refuses != (node_state_of(&a->node) == NODE_UP))
                FAIL("the node %s is %s and is %sgiven jobs", a->name,
                     sm_state(&node_states, node_state_of(&a->node)), a->refuses ? "not " : "");
        return NULL;
}

static const char *check_request(const struct core *c, const struct request *r)
{
        const struct request_cold *cold = request_cold(r);
        struct set idle = {0}, all = {0};
        uint64_t active, in_buckets = 0, sum;
        const char *bad = check_jobs(c, r, &active);
        bool wrong;

        if (bad)
                return bad;
        if (active != r->active)
                FAIL("request %llu counts %u attempts and has %llu", ID(r), r->active,
                     (unsigned long long)active);
        for (size_t i = 0; i < r->bucket_count; i++)
                in_buckets += set_count(&r->buckets[i]->idle);
        request_idle_all(r, &idle);
        sum = set_count(&idle) + set_count(&cold->held) + set_count(&cold->completed) +
              set_count(&cold->removed) + active;
        in_buckets += set_count(&cold->waiting);
        set_add_all(&all, &idle);
        set_add_all(&all, &cold->held);
        set_add_all(&all, &cold->completed);
        set_add_all(&all, &cold->removed);
        active += set_count(&all);
        wrong = in_buckets != set_count(&idle) || r->idle + set_count(&cold->waiting) != in_buckets ||
                sum != r->count || active != r->count;
        set_deinit(&idle);
        set_deinit(&all);
        if (wrong)
                FAIL("request %llu: its jobs are not each in one place (idle %llu, "
                     "held %llu, completed %llu, removed %llu, active %u, of %u)",
                     ID(r), (unsigned long long)r->idle, (unsigned long long)set_count(&cold->held),
                     (unsigned long long)set_count(&cold->completed),
                     (unsigned long long)set_count(&cold->removed), r->active, r->count);
        return NULL;
}

/* What attempts that are not accepted take of countable resources is what the queue counts. */
static const char *check_resources(const struct queue *q)
{
        for (unsigned i = 0; i < q->resource_count; i++) {
                int64_t taken = 0;

                for (const struct job *j = q->attempts; j; j = j->next)
                        for (unsigned k = 0; !j->accepted && j->more && k < j->more->count; k++)
                                if (j->more->v[k].name == q->resources[i].name)
                                        taken += j->more->v[k].n;
                if (taken != q->resources[i].taken)
                        FAIL("queue %s of %s counts %lld of a resource as taken, and it is %lld", q->name,
                             q->agent->name, (long long)q->resources[i].taken, (long long)taken);
        }
        return NULL;
}

static const char *check_queue(const struct queue *q)
{
        uint32_t n = 0, taken = 0, running = 0;
        int64_t cpus = 0;

        for (const struct job *j = q->attempts; j; j = j->next) {
                n++;
                running += job_state_runs(j->state);
                if (j->queue != q)
                        FAIL("%llu.%u is in the list of another queue", ID(j->request), j->member);
                if (request_job(j->request, j->member) != j)
                        FAIL("%llu.%u has two records", ID(j->request), j->member);
                if (!j->accepted) {
                        taken++;
                        cpus += j->cpus;
                }
        }
        if (n != q->attempt_count || running != q->running || taken != q->taken_jobs || cpus != q->taken_cpus)
                FAIL("queue %s of %s counts %u attempts (%u not accepted) and has %u (%u)", q->name,
                     q->agent->name, q->attempt_count, q->taken_jobs, n, taken);
        return check_resources(q);
}

static const char *check_classes(const struct core *c)
{
        void *value;
        uint64_t idle = 0, all = 0, unfiled = 0;

        for (size_t at = 0; map_next(c->classes->by_key, &at, NULL, &value);) {
                const struct job_class *k = value;

                idle += k->idle;
                if ((k->idle > 0) != (k->index.in_signature.node.weight > 0))
                        FAIL("a class with %llu idle jobs is %sin the index", (unsigned long long)k->idle,
                             k->idle ? "not " : "");
        }
        for (const struct request *r = c->requests->first; r; r = r->next) {
                all += r->idle;
                unfiled += set_count(&request_cold(r)->unfiled);
        }
        if (unfiled != c->requests->unfiled)
                FAIL("%llu jobs are to be filed, and %llu are counted", (unsigned long long)unfiled,
                     (unsigned long long)c->requests->unfiled);
        if (!c->config.shadow && idle != all)
                FAIL("classes count %llu idle jobs, requests %llu", (unsigned long long)idle,
                     (unsigned long long)all);
        return NULL;
}

const char *core_check(struct core *c)
{
        const char *bad;
        void *value;

        for (const struct request *r = c->requests->first; r; r = r->next) {
                bad = check_request(c, r);
                if (!bad)
                        bad = check_losses(c, r);
                if (bad)
                        return bad;
        }
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                bad = check_node(value);
                if (bad)
                        return bad;
        }
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                for (const struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next) {
                        bad = check_queue(q);
                        if (bad)
                                return bad;
                }
        if (c->matching->wrong_choice)
                FAIL("a place was chosen for a job that cost more than another one");
        bad = reserve_invariant(c);
        if (!bad)
                bad = advance_invariant(c);
        if (!bad)
                bad = meta_invariant(c);
        if (!bad)
                bad = space_invariant(c);
        if (bad)
                return bad;
        bad = charge_invariant(c);
        if (!bad)
                bad = data_invariant(c);
        if (!bad)
                bad = gang_invariant(c);
        if (!bad)
                bad = dependency_invariant(c);
        if (!bad)
                bad = forecast_invariant(c);
        if (!bad)
                bad = billing_invariant(c);
        return bad ? bad : check_classes(c);
}
