/* Served bytes grow at bandwidth / n. As all transfers get the same, they end in the order of the value of
 * `served` at which each has had its bytes, whatever joins or leaves: so adding and ending are O(log n). */
#include "sim/pipe.h"

#include <math.h>

static bool before(const struct heap_node *a, const struct heap_node *b)
{
        return container_of(a, const struct sim_flow, node)->ends <
               container_of(b, const struct sim_flow, node)->ends;
}

void sim_pipe_init(struct sim_pipe *p, const struct sim_link *link)
{
        *p = (struct sim_pipe){.bytes_per_ms = (double)link->bytes_per_s / 1000, .flows = {.before = before}};
        p->latency_bytes = p->bytes_per_ms * (double)link->latency_us / 1000;
}

void sim_pipe_deinit(struct sim_pipe *p)
{
        heap_deinit(&p->flows);
}

static void pipe_advance(struct sim_pipe *p, int64_t now_ms)
{
        if (p->flows.count)
                p->served += (double)(now_ms - p->at_ms) * p->bytes_per_ms / (double)p->flows.count;
        else
                p->served = 0; /* keeps the numbers small, and so exact */
        p->at_ms = now_ms;
}

void sim_pipe_add(struct sim_pipe *p, struct sim_flow *f, uint64_t bytes, int64_t now_ms)
{
        pipe_advance(p, now_ms);
        f->node.place = 0;
        f->pipe = p;
        f->ends = p->served + (double)bytes + p->latency_bytes;
        heap_put(&p->flows, &f->node);
}

void sim_pipe_cancel(struct sim_flow *f, int64_t now_ms)
{
        if (!f->node.place)
                return;
        pipe_advance(f->pipe, now_ms);
        heap_take(&f->pipe->flows, &f->node);
}

int64_t sim_pipe_next(const struct sim_pipe *p)
{
        const struct heap_node *first = heap_first(&p->flows);
        double ms;

        if (!first)
                return SIM_NEVER;
        ms = (container_of(first, const struct sim_flow, node)->ends - p->served) * (double)p->flows.count /
             p->bytes_per_ms;
        return p->at_ms + (ms > 0 ? (int64_t)ceil(ms) : 0);
}

struct sim_flow *sim_pipe_ended(struct sim_pipe *p, int64_t now_ms)
{
        struct heap_node *first;
        struct sim_flow *f;

        pipe_advance(p, now_ms);
        first = heap_first(&p->flows);
        f = first ? container_of(first, struct sim_flow, node) : NULL;
        if (!f || f->ends > p->served + p->bytes_per_ms * 1e-3) /* a microsecond, for rounding */
                return NULL;
        heap_take(&p->flows, first);
        return f;
}
