#include "core/model/walk.h"
#include "base/mem.h"
#include "core/model/core_parts.h"
#include "core/query.h"

/* Evaluation steps after which a slice ends, however few queues it has looked at. */
#define WALK_STEPS_MAX 100000u

struct core_walk {
        struct core_agent **agents; /* valid for the life of the core: agents and queues are never freed */
        size_t count, at;
        struct queue *next; /* queue of the agent before agents[at]; NULL: continue with agents[at] */
};

struct core_walk *core_walk_new(struct core *c)
{
        struct core_walk *w = mem_new(struct core_walk);

        w->agents = agents_sorted(c, &w->count);
        return w;
}

void core_walk_free(struct core_walk *w)
{
        if (!w)
                return;
        free(w->agents);
        free(w);
}

struct queue *walk_next(struct core_walk *w)
{
        struct queue *q = w->next;

        while (!q && w->at < w->count)
                q = w->agents[w->at++]->queues;
        w->next = q ? q->next : NULL;
        return q;
}

bool walk_has_steps(const struct core *c, uint64_t began, unsigned queues)
{
        return queues > UINT32_MAX / 2 || core_steps(c) - began < WALK_STEPS_MAX;
}

bool core_walk_is_over(const struct core_walk *w)
{
        bool more = w->next != NULL;

        for (size_t i = w->at; i < w->count && !more; i++)
                more = w->agents[i]->queues != NULL;
        return !more;
}
