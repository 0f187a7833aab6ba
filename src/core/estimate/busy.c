#include "core/estimate/busy.h"

#include "base/mem.h"
#include "core/estimate/estimate.h"
#include "core/model/core_parts.h"

#define ENDS_MAX      1024u /* most attempts of a queue that are examined */
#define ENDS_VALID_MS 1000

static int by_time(const void *x, const void *y)
{
        int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

        return (a > b) - (a < b);
}

/* Computes when the queue's attempts will end, soonest first, as Unix milliseconds. */
static void ends_refresh(struct core *c, struct queue *q)
{
        if (q->ends_count == (q->attempt_count < ENDS_MAX ? q->attempt_count : ENDS_MAX) &&
            c->now_ms - q->ends_at_ms < ENDS_VALID_MS && c->now_ms >= q->ends_at_ms)
                return;
        q->ends_count = 0;
        q->ends_at_ms = c->now_ms;
        q->ends = mem_array(q->ends, q->attempt_count + 1, sizeof(*q->ends));
        for (struct job *j = q->attempts; j && q->ends_count < ENDS_MAX; j = j->next)
                q->ends[q->ends_count++] = estimate_end_ms(c, j);
        if (q->ends_count > 1)
                qsort(q->ends, q->ends_count, sizeof(*q->ends), by_time);
}

int64_t busy_queue_ms(const struct core *c, const struct queue *q)
{
        return q->begins_ms > c->now_ms ? q->begins_ms - c->now_ms : 0;
}

int64_t busy_wait_ms(struct core *c, struct queue *q, uint32_t nth)
{
        int64_t at, rounds;

        ends_refresh(c, q);
        if (q->ends_count == 0)
                return q->begins_ms ? busy_queue_ms(c, q) : BUSY_UNKNOWN;
        at = q->ends[nth % q->ends_count];
        rounds = nth / q->ends_count;
        at = at > c->now_ms ? at - c->now_ms : 0;
        if (at < busy_queue_ms(c, q))
                at = busy_queue_ms(c, q);
        return at + rounds * (int64_t)c->estimates->everybody.run_ms;
}
