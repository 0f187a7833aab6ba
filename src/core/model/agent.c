/* Agents and their queues are created when an event or a session first names them, and kept. */
#include "core/model/agent.h"

#include <assert.h>

#include "base/mem.h"
#include "core/model/core_parts.h"
#include "core/model/need.h"

struct core_agent *agent_find(const struct core *c, const char *name)
{
        return map_get(c->agents, str_of(name));
}

struct core_agent *agent_get(struct core *c, struct str name)
{
        struct core_agent *a = map_get(c->agents, name);

        if (!a) {
                a = mem_new(struct core_agent);
                a->name = str_dupz(name);
                a->renewed_steady_ms = c->steady_ms;
                map_put(c->agents, name, a);
                a->number = (uint32_t)map_count(c->agents);
                c->listeners.agent_made(c, a);
        }
        return a;
}

struct queue *queue_find(const struct core *c, const char *agent, const char *queue)
{
        const struct core_agent *a = agent_find(c, agent);
        struct queue *q = a ? a->queues : NULL;

        while (q && strcmp(q->name, queue) != 0)
                q = q->next;
        return q;
}

struct queue *queue_get(struct core *c, struct core_agent *a, struct str name)
{
        struct queue *q, **end = &a->queues;

        (void)c;
        /* Sorted by name, so that snapshots have one order whichever queue was created first. */
        for (q = a->queues; q && str_cmp(str_of(q->name), name) <= 0; end = &q->next, q = q->next)
                if (str_eqz(name, q->name))
                        return q;
        q = mem_new(struct queue);
        q->name = str_dupz(name);
        q->agent = a;
        a->queue_count++;
        q->next = *end;
        *end = q;
        return q;
}

static int by_name(const void *a, const void *b)
{
        return strcmp((*(struct core_agent *const *)a)->name, (*(struct core_agent *const *)b)->name);
}

struct core_agent **agents_sorted(struct core *c, size_t *ret_count)
{
        struct core_agent **all = mem_array(NULL, map_count(c->agents) + 1, sizeof(struct core_agent *));
        size_t n = 0;
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                all[n++] = value;
        if (n)
                qsort(all, n, sizeof(struct core_agent *), by_name);
        *ret_count = n;
        return all;
}

/* An agent's offers do not take attempts into account that it has not accepted: the queue counts them here
 * (taken_*). */
static void count_taken(struct queue *q, const struct job *j, int sign)
{
        q->taken_cpus += sign * (int64_t)j->cpus;
        q->taken_memory_mib += sign * (int64_t)j->memory_mib;
        q->taken_disk_kib += sign * (int64_t)j->disk_kib;
        q->taken_jobs += (uint32_t)sign;
        need_count_taken(q, j, sign);
}

/* Makes the reason that `why` gives for a node without jobs; NULL: the node gets jobs. */
static char *node_refuses(const struct node_record *n)
{
        static const char *const words[NODE_STATES] = {
                [NODE_DRAINING] = "drained by", [NODE_DRAINED] = "drained by",
                [NODE_FAILED] = "failed, says", [NODE_DOWN] = "down, says",
                [NODE_RETIRED] = "retired by",  [NODE_BOOTING] = "booting, says",
        };
        struct buf text = {0};

        if (!words[node_state_of(n)])
                return NULL;
        buf_printf(&text, "%s %s%s%s", words[n->state], n->by, *n->reason ? ": " : "", n->reason);
        return buf_take(&text);
}

void agent_node_move(struct core_agent *a, const struct event *e)
{
        struct node_record *n = &a->node;
        enum node_state from = node_state_of(n);

        if (e->next == NODE_FAILED && from != NODE_FAILED)
                n->back = from == NODE_BOOTING ? NODE_UP : from;
        if (from == NODE_BOOTING && e->next == NODE_UP && n->instance && e->at_ms > n->since_ms)
                n->boot_ms = e->at_ms - n->since_ms;
        if (e->next == NODE_UP && from != NODE_UP)
                a->losses = (struct node_losses){0};
        n->state = (enum node_state)e->next;
        n->since_ms = e->at_ms;
        if (e->next != NODE_FAILED)
                n->deadline_ms = e->value;
        free(n->by);
        free(n->reason);
        n->by = str_dupz(e->who);
        n->reason = str_dupz(e->reason);
        free(a->refuses);
        a->refuses = node_refuses(n);
}

uint32_t agent_attempts(const struct core_agent *a)
{
        uint32_t n = 0;

        for (const struct queue *q = a->queues; q; q = q->next)
                n += q->attempt_count;
        return n;
}

void queue_attach(struct queue *q, struct job *j)
{
        assert(!j->queue);
        j->queue = q;
        j->prev = NULL;
        j->next = q->attempts;
        if (j->next)
                j->next->prev = j;
        q->attempts = j;
        q->attempt_count++;
        if (!j->accepted)
                count_taken(q, j, 1);
}

void queue_mark_alone(struct core *c, struct queue *q)
{
        for (struct job *j = c->requests->suspected ? q->attempts : NULL; j; j = j->next)
                if (!j->alone && job_is_suspected(j) && j->gang_size == 0 && queue_is_node(c, q)) {
                        j->alone = true;
                        q->agent->alone++;
                }
}

void queue_accepted(struct queue *q, struct job *j)
{
        if (!j->accepted)
                count_taken(q, j, -1);
        j->accepted = true;
}

void queue_detach(struct queue *q, struct job *j)
{
        assert(j->queue == q && q->attempt_count > 0);
        queue_accepted(q, j);
        if (j->next)
                j->next->prev = j->prev;
        if (j->prev)
                j->prev->next = j->next;
        else
                q->attempts = j->next;
        j->next = j->prev = NULL;
        j->last_queue = q;
        j->queue = NULL;
        q->attempt_count--;
        q->agent->alone -= j->alone;
        j->alone = false;
}

struct str queue_denies_owner(const struct queue *q, const char *owner)
{
        return owners_deny(&q->owners, str_of(owner));
}

bool queue_allows_owner(const struct queue *q, const char *owner)
{
        return owners_allow(&q->owners, str_of(owner));
}

static void queue_free(struct queue *q)
{
        free(q->name);
        free(q->unreachable);
        free(q->closed);
        ad_free(q->ad);
        owners_deinit(&q->owners);
        free(q->resources);
        free(q->ends);
        free(q);
}

void agents_free(struct core *c)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                struct core_agent *a = value;

                while (a->queues) {
                        struct queue *q = a->queues;

                        a->queues = q->next;
                        queue_free(q);
                }
                node_deinit(&a->node);
                free(a->refuses);
                free(a->labels);
                free(a->name);
                free(a);
        }
        map_free(c->agents);
}
