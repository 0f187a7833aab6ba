/* SUMS's policy by queue monitor: jobs go to the queue where they will start first, as far as is measured.
 *
 * A handful of numbers stand for all that makes a queue quick or slow: how long attempts there wait until
 * they start, how often one ends, and how many wait already. A queue's own word on its wait (QueueWait, which
 * a sensor program may give) comes before the measured one. A queue that nothing is known of is tried first,
 * since that is how something becomes known; the mean run time of all jobs stands for its throughput, so that
 * it is not given everything at once. */
#include "core/estimate/estimate.h"
#include "core/match/policy.h"
#include "core/model/agent.h"
#include "core/model/core_parts.h"

static double queue_cost(struct core *c, const struct part *p, uint32_t member, const struct queue *q)
{
        const struct queue_measures *m = &q->measures;
        double wait_ms = q->wait_s > 0 && !q->wait_unknown ? q->wait_s * 1000 : m->wait_ms;
        double gap_ms = m->gap_ms > 0 ? m->gap_ms : (double)c->estimates->everybody.run_ms;

        (void)p;
        (void)member;
        return wait_ms + gap_ms * (q->attempt_count - q->running);
}

const struct policy policy_queue = {CORE_PLACE_QUEUE, .spreads = true, .cost = queue_cost};
