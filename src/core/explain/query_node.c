/* Queries about nodes. */
#include "base/mem.h"
#include "core/model/core_parts.h"
#include "core/query.h"

static void query_node_view(const struct core_agent *a, struct core_node *ret)
{
        const struct node_record *n = &a->node;
        enum node_state s = node_state_of(n);

        *ret = (struct core_node){
                .name = a->name,
                .state = s,
                .connected = a->connected,
                .since_ms = n->since_ms,
                .by = n->by,
                .reason = n->reason,
                .deadline_ms = n->deadline_ms,
                .facts = n->facts,
                .attempts = agent_attempts(a),
                .losses = a->losses.row,
                .renewed_ms = a->renewed_wall_ms,
                .refuses = a->refuses,
        };
        ret->provisioned = node_instance_of(n, &ret->instance);
        ret->boot_ms = n->boot_ms;
        ret->state_name = s != NODE_UP ? sm_state(&node_states, s) : ret->attempts ? "busy" : "idle";
}

int core_node_get(struct core *c, const char *agent, struct core_node *ret)
{
        const struct core_agent *a = agent_find(c, agent);

        if (!a)
                return CORE_UNKNOWN;
        query_node_view(a, ret);
        return 0;
}

void core_nodes(struct core *c, void (*fn)(void *arg, const struct core_node *n), void *arg)
{
        size_t n;
        struct core_agent **all = agents_sorted(c, &n);

        for (size_t i = 0; i < n; i++) {
                struct core_node one;

                query_node_view(all[i], &one);
                fn(arg, &one);
        }
        free(all);
}

int core_node_jobs(struct core *c, const char *agent,
                   void (*fn)(void *arg, uint64_t request, uint32_t member, enum job_state state), void *arg)
{
        const struct core_agent *a = agent_find(c, agent);

        if (!a)
                return CORE_UNKNOWN;
        for (const struct queue *q = a->queues; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        fn(arg, j->request->id, j->member, j->state);
        return 0;
}

int core_job_losses(struct core *c, uint64_t request, uint32_t member, struct core_job_losses *ret)
{
        const struct request *r = request_find(c, request);
        const struct job *j = r ? request_job(r, member) : NULL;

        if (!j || !j->losses)
                return CORE_UNKNOWN;
        *ret = (struct core_job_losses){
                .lost = j->losses->lost,
                .most = c->config.max_lost,
                .until_ms = request_is_delayed(r, member) ? j->losses->until_ms : 0,
                .suspected = job_is_suspected(j),
                .node_count = j->losses->node_count,
        };
        for (size_t i = 0; i < ret->node_count; i++)
                ret->nodes[i] = j->losses->nodes[i]->name;
        return 0;
}
