#include "agent/queue/wait.h"

#include "agent/model/walltime.h"
#include "agent/step/submit.h"
#include "base/system/clock.h"

#define EVERY_MS   60000
#define UNKNOWN_MS 600000
/* a job that waits there so long while processors are idle waits for something else */
#define PENDING_MS 30000

/* Returns the attempt that waits there longest; NULL: none waits. */
static const struct attempt *longest(const struct queue *q)
{
        const struct attempt *found = NULL;

        for (const struct attempt *at = q->lists[ATTEMPT_RUNNING]; at; at = at->next)
                if (!at->result.started_ms && (!found || at->assigned_ms < found->assigned_ms))
                        found = at;
        return found;
}

static bool would_wait(const struct run_capacity *has, const struct attempt *at, uint64_t cpus_milli)
{
        return has->idle_cpus_milli < (cpus_milli ? cpus_milli : 1000) ||
               (at && clock_boot_ms() - at->assigned_ms > PENDING_MS);
}

void queue_wait_look(struct queue *q, const struct run_capacity *has, uint64_t like_cpus_milli,
                     uint64_t like_memory_bytes)
{
        struct queue_wait *w = &q->wait;
        const struct attempt *at = longest(q);
        int64_t now = clock_boot_ms();

        if (!would_wait(has, at, at ? at->cpus_milli : like_cpus_milli)) {
                w->begins_ms = 0;
                w->unknown = false;
                return;
        }
        if (w->asking || now < w->next_ms || !q->backend->ready)
                return;
        w->asking = true;
        w->next_ms = now + EVERY_MS;
        if (at) {
                step_quote(at);
                return;
        }
        struct run_spec spec = {.job = "",
                                .walltime_ms = walltime_of_queue(q, has),
                                .cpus_milli = like_cpus_milli,
                                .memory_bytes = like_memory_bytes};
        q->backend->runner->kind->quote(q->backend->runner, &spec);
}

static struct queue *queue_of(const struct backend *b)
{
        for (size_t i = 0; i < b->a->queue_count; i++)
                if (b->a->queues[i]->backend == b && !b->a->queues[i]->retired)
                        return b->a->queues[i];
        return NULL;
}

void queue_wait_told(struct backend *b, const struct run_quote *e)
{
        struct queue *q = queue_of(b);

        if (!q || !q->wait.asking)
                return;
        struct queue_wait *w = &q->wait;
        w->asking = false;
        w->unknown = !e->error && !e->begins_ms;
        if (e->error || !e->begins_ms) {
                w->begins_ms = 0;
                w->next_ms = clock_boot_ms() + UNKNOWN_MS;
        } else {
                w->begins_ms = w->begins_ms ? (w->begins_ms + e->begins_ms) / 2 : e->begins_ms;
        }
        agent_turn_later(b->a);
}

uint64_t queue_wait_s(const struct queue *q)
{
        uint64_t now = (uint64_t)clock_wall_ms(), s, step;

        if (q->wait.begins_ms <= now)
                return 0;
        s = (q->wait.begins_ms - now + 999) / 1000;
        step = s <= 60 ? 10 : 60;
        return (s + step - 1) / step * step;
}
