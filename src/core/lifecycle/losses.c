#include "core/lifecycle/losses.h"

#include <stdio.h>

#include "core/classes/bucket.h"
#include "core/model/core_parts.h"
#include "core/model/pending_match.h"

#define CLEARING_LOOK_MS 1000

/* ---- decisions */

/* Returns whether the attempt was only matched, or is waiting for the others of its gang: nothing of it
 * ran. */
static bool only_given(const struct job *j)
{
        return j->state == JOB_MATCHED || (j->gang_size && !j->gang_goes);
}

static int32_t kind_of(struct core *c, const struct job *j, enum loss_by by)
{
        int32_t kind = LOSS_COUNTS;

        if (j->state == JOB_VACATING || by == LOSS_BY_ORDER || (only_given(j) && by == LOSS_BY_SILENCE))
                return 0;
        if (!queue_is_node(c, j->queue)) /* a batch system may have preempted the attempt */
                return kind;
        kind |= LOSS_AT_NODE;
        /* The report of the start may have been lost with the agent. */
        if (by == LOSS_BY_SILENCE || by == LOSS_BY_AGENT_RAN || j->state == JOB_RUNNING ||
            j->state == JOB_SUSPENDED)
                kind |= LOSS_RAN;
        return kind;
}

static void say_held(struct core *c, const struct job *j, struct str why, struct loss_decision *d)
{
        BUF_CLEANUP struct buf text = {.max = sizeof(d->reason) - 1};
        const struct job_losses *l = j->losses;
        bool last = true;

        buf_printf(&text, "%u attempts in a row were lost", c->config.max_lost);
        for (uint32_t i = 0; l && i < l->node_count; i++) {
                buf_printf(&text, "%s %s", i ? "," : " at", l->nodes[i]->name);
                last &= l->nodes[i] != j->queue->agent;
        }
        if (last)
                buf_printf(&text, "%s %s", l && l->node_count ? "," : " at", j->queue->agent->name);
        buf_printf(&text, "; the last one: " STR_FMT, STR_ARG(str_head(why, 200)));
        snprintf(d->reason, sizeof(d->reason), "%s", buf_z(&text));
}

void losses_decide(struct core *c, const struct job *j, struct str why, enum loss_by by,
                   struct loss_decision *d)
{
        uint32_t lost = j->losses ? j->losses->lost : 0;

        *d = (struct loss_decision){.next = JOB_IDLE, .subcode = kind_of(c, j, by)};
        snprintf(d->reason, sizeof(d->reason), STR_FMT, STR_ARG(str_head(why, sizeof(d->reason) - 1)));
        if (j->state == JOB_VACATING) {
                d->next = j->goal;
                d->code = j->hold_code;
                snprintf(d->reason, sizeof(d->reason), "%s", j->hold_reason ? j->hold_reason : "");
        } else if ((d->subcode & LOSS_RAN) && lost + 1 >= c->config.max_lost) {
                d->next = JOB_HELD;
                d->code = CORE_HOLD_LOST;
                say_held(c, j, why, d);
        }
}

/* ---- by time */

/* A pause does not become longer when the clock is set back. */
static bool is_over(const struct core *c, const struct job *j)
{
        return j->losses->until_ms <= c->now_ms || j->losses->until_ms > c->now_ms + LOSSES_PAUSE_MAX_MS;
}

static int64_t members_tick(struct core *c, struct request *r)
{
        struct set over = {0};
        int64_t next = INT64_MAX;

        SET_FOREACH (&request_cold(r)->delayed, m) {
                const struct job *j = request_job(r, (uint32_t)m);

                if (is_over(c, j))
                        set_add(&over, (uint32_t)m);
                else if (j->losses->until_ms - c->now_ms < next)
                        next = j->losses->until_ms - c->now_ms;
        }
        if (set_count(&over)) {
                request_delay_over(c, r, &over);
                set_remove_all(&request_cold_make(r)->waiting, &over);
                request_idle_add(c, r, &over);
        }
        set_deinit(&over);
        return next;
}

static int64_t jobs_tick(struct core *c)
{
        int64_t next = INT64_MAX;
        BUF_CLEANUP struct buf ids = {0};
        uint64_t id;
        size_t n;

        if (c->requests->delayed_due_ms > c->now_ms &&
            c->requests->delayed_due_ms < c->now_ms + LOSSES_PAUSE_MAX_MS)
                return c->requests->delayed_due_ms - c->now_ms;
        for (size_t at = 0; idmap_next(c->requests->delayed, &at, &id, NULL);)
                buf_add(&ids, &id, sizeof(id));
        n = ids.n / sizeof(id);
        for (size_t i = 0; i < n; i++) {
                int64_t due;

                memcpy(&id, ids.p + i * sizeof(id), sizeof(id));
                due = members_tick(c, request_find(c, id));
                if (due < next)
                        next = due;
        }
        c->requests->delayed_due_ms = next == INT64_MAX ? INT64_MAX : c->now_ms + next;
        return next;
}

static int64_t pauses_tick(struct core *c)
{
        int64_t next = INT64_MAX;
        void *value;

        if (c->nodes.due_ms > c->steady_ms)
                return c->nodes.due_ms == INT64_MAX ? INT64_MAX : c->nodes.due_ms - c->steady_ms;
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                struct core_agent *a = value;

                if (a->losses.until_ms == 0)
                        continue;
                if (a->losses.until_ms > c->steady_ms) {
                        if (a->losses.until_ms - c->steady_ms < next)
                                next = a->losses.until_ms - c->steady_ms;
                        continue;
                }
                a->losses.until_ms = 0;
                for (struct queue *q = a->queues; q; q = q->next)
                        if (q->offers && q->jobs_left > 0)
                                queue_look_again(c, q);
        }
        c->nodes.due_ms = next == INT64_MAX ? INT64_MAX : c->steady_ms + next;
        return next;
}

/* Returns whether no node needs to be kept empty any more: the job has a place, does not wait or changed its
 * class, or the node takes no jobs. */
static bool clearing_is_over(struct core *c)
{
        const struct clearing *x = &c->nodes.clearing;
        struct request *r = request_find(c, x->request);
        const struct bucket *b = r ? request_bucket(c, r, x->member) : NULL;

        return !b || !b->job_class || b->job_class->index.serial != x->job_class ||
               !set_has(&b->idle, x->member) || !agent_takes_jobs(x->agent);
}

static int64_t clearing_tick(struct core *c)
{
        struct core_agent *a = c->nodes.clearing.agent;

        if (!a)
                return INT64_MAX;
        if (!clearing_is_over(c))
                return CLEARING_LOOK_MS;
        c->nodes.clearing.agent = NULL;
        for (struct queue *q = a->queues; q; q = q->next)
                if (q->offers && q->jobs_left > 0)
                        queue_look_again(c, q);
        return INT64_MAX;
}

int64_t losses_tick(struct core *c)
{
        int64_t jobs, nodes, clearing;

        if (c->config.shadow)
                return INT64_MAX;
        jobs = jobs_tick(c);
        nodes = pauses_tick(c);
        clearing = clearing_tick(c);
        if (clearing < jobs)
                jobs = clearing;
        return jobs < nodes ? jobs : nodes;
}
