/* Leases are renewed by agents' messages, and ended by time. */
#include "core/lifecycle/leases.h"

#include "core/lifecycle/attempts.h"
#include "core/model/core_parts.h"

#define LEASE_RENEWALS 3     /* approximate number of renewals in a lease's term */
#define LOSE_SLICE     1000u /* attempts lost in one call */

void core_renew(struct core *c, const char *agent)
{
        struct core_agent *a = agent_find(c, agent);

        if (a) {
                a->renewed_steady_ms = c->steady_ms;
                a->renewed_wall_ms = c->now_ms;
        }
}

void core_heard(struct core *c, const char *agent, int64_t steady_ms)
{
        struct core_agent *a = agent_find(c, agent);

        if (a && steady_ms > a->renewed_steady_ms)
                a->renewed_steady_ms = steady_ms;
}

/* Returns the time until which the attempt may run, though its agent is silent. If the author allows two
 * attempts at a time (RerunOnLost), a missed renewal is enough. */
static int64_t lease_end(const struct core *c, const struct job *j)
{
        const struct core_agent *a = j->queue->agent;
        const struct part *p =
                a->connected || c->config.shadow ? NULL : request_part(j->request, j->member, NULL);
        int64_t term = (int64_t)j->lease_ms / (p && p->job_template->rerun_eager ? LEASE_RENEWALS : 1);

        return a->renewed_steady_ms + term + c->config.lease_margin_ms;
}

void lease_began(struct core *c, const struct job *j)
{
        int64_t end = lease_end(c, j);

        if (end < c->leases->due_ms)
                c->leases->due_ms = end;
}

static void lose_one(struct core *c, struct job *j, unsigned *left)
{
        --*left;
        attempt_lose(c, j,
                     j->unknown ? STR("the agent does not know this attempt")
                                : STR("the lease ended: nothing was heard of the agent"),
                     LOSS_BY_SILENCE);
}

static bool lease_is_over(const struct core *c, const struct core_agent *a)
{
        for (const struct queue *q = a->queues; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        if (!j->unknown && lease_end(c, j) <= c->steady_ms)
                                return true;
        return false;
}

/* Asks for renewals that were acknowledged without the core. Where there are none, `heard` has stopped
 * further ones. */
static void hear(struct core *c, struct core_agent *a)
{
        while (c->world.heard && lease_is_over(c, a)) {
                int64_t heard_ms = c->world.heard(c->world.arg, a->name, a->renewed_steady_ms);

                if (heard_ms <= a->renewed_steady_ms)
                        return;
                a->renewed_steady_ms = heard_ms;
        }
}

/* Renewals only postpone ends, so no lease ends before the earliest end seen in the last pass, or begun
 * since. Nothing needs to be looked at before that time. */
int64_t leases_end(struct core *c)
{
        unsigned left = LOSE_SLICE;
        void *value;

        if (c->steady_ms >= c->leases->due_ms) {
                c->leases->due_ms = INT64_MAX;
                for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                        struct core_agent *a = value;

                        hear(c, a);
                        for (struct queue *q = a->queues; q; q = q->next)
                                for (struct job *j = q->attempts, *after; j; j = after) {
                                        after = j->next;
                                        if (!j->unknown && lease_end(c, j) > c->steady_ms)
                                                lease_began(c, j);
                                        else if (left == 0)
                                                c->leases->due_ms = c->steady_ms; /* goes on at once */
                                        else
                                                lose_one(c, j, &left);
                                }
                }
        }
        return c->leases->due_ms == INT64_MAX ? INT64_MAX : c->leases->due_ms - c->steady_ms;
}
