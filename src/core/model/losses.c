#include "core/model/losses.h"

#include "base/mem.h"
#include "core/model/core_parts.h"

/* A loss after a run of this length does not count for the node: a node that fails jobs does so quickly. */
#define LONG_RUN_MS 600000

int64_t losses_pause_ms(const struct core *c, uint32_t in_a_row)
{
        int64_t pause = c->config.lost_pause_ms;

        if (in_a_row < 2 || pause < 0)
                return 0;
        for (uint32_t i = 2; i < in_a_row && pause < LOSSES_PAUSE_MAX_MS; i++)
                pause *= 2;
        return pause < LOSSES_PAUSE_MAX_MS ? pause : LOSSES_PAUSE_MAX_MS;
}

bool queue_is_node(struct core *c, const struct queue *q)
{
        struct str runner;

        return q->ad &&
               (!eval_string(&c->eval, q->ad, NULL, c->attr.Runner, &runner) || str_eqz(runner, "process"));
}

bool job_is_suspected(const struct job *j)
{
        return j && j->losses && j->losses->node_count >= LOSSES_SUSPECT;
}

bool request_is_delayed(const struct request *r, uint32_t member)
{
        return set_has(&request_cold(r)->delayed, member);
}

void request_delay_over(struct core *c, struct request *r, const struct set *members)
{
        if (set_count(&request_cold(r)->delayed) == 0)
                return;
        set_remove_all(&r->cold->delayed, members);
        if (set_count(&r->cold->delayed) == 0)
                idmap_take(c->requests->delayed, r->id);
}

static void note_node(struct job_losses *l, struct core_agent *a)
{
        for (uint32_t i = 0; i < l->node_count; i++)
                if (l->nodes[i] == a)
                        return;
        if (l->node_count < LOSSES_NODES)
                l->nodes[l->node_count++] = a;
}

static void count_job(struct core *c, struct request *r, struct job *j, const struct event *e)
{
        struct job_losses *l = j->losses;

        if (!l)
                l = j->losses = mem_new(struct job_losses);
        l->failed++;
        if (e->subcode & LOSS_RAN) {
                l->lost++;
                note_node(l, j->queue->agent);
                c->requests->suspected |= job_is_suspected(j);
        }
        l->until_ms = 0;
        if (e->next != JOB_IDLE || j->gang_size || losses_pause_ms(c, l->failed) == 0)
                return;
        l->until_ms = e->at_ms + losses_pause_ms(c, l->failed);
        set_add(&request_cold_make(r)->delayed, j->member);
        idmap_put(c->requests->delayed, r->id, r);
        if (l->until_ms < c->requests->delayed_due_ms)
                c->requests->delayed_due_ms = l->until_ms;
}

/* Returns whether the job differs from those of the row. Two jobs of one request count as the same until one
 * of the request's jobs has completed, which shows that they can run. */
static bool is_unrelated(const struct node_losses *n, const struct request *r, uint32_t member)
{
        bool ran = set_count(&request_cold(r)->completed) > 0;

        for (uint32_t i = 0; i < n->unrelated; i++)
                if (n->jobs[i].request == r->id && (!ran || n->jobs[i].member == member))
                        return false;
        return true;
}

/* An attempt that had begun before the last failure belongs to that failure. */
static void count_node(struct core *c, const struct request *r, const struct job *j, const struct event *e)
{
        struct node_losses *n = &j->queue->agent->losses;

        if (n->at_ms && j->entered_ms <= n->at_ms)
                return;
        if (e->at_ms - j->entered_ms > LONG_RUN_MS + (int64_t)j->lease_ms)
                return;
        n->at_ms = e->at_ms;
        n->row++;
        n->until_ms = c->steady_ms + losses_pause_ms(c, n->row);
        if (n->until_ms < c->nodes.due_ms)
                c->nodes.due_ms = n->until_ms;
        if (n->unrelated < LOSSES_DRAIN && is_unrelated(n, r, j->member)) {
                n->jobs[n->unrelated].request = r->id;
                n->jobs[n->unrelated++].member = j->member;
        }
}

void losses_count(struct core *c, struct request *r, struct job *j, const struct event *e)
{
        if (!(e->subcode & LOSS_COUNTS))
                return;
        if (e->subcode & LOSS_AT_NODE)
                count_node(c, r, j, e);
        count_job(c, r, j, e);
}

void losses_clear(struct job *j)
{
        free(j->losses);
        j->losses = NULL;
        j->queue->agent->losses = (struct node_losses){0};
}
