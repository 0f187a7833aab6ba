/* The turn: what is gathered while callbacks run leaves in one order at their end. */
#include "agent/agent.h"
#include "agent/queue/offers.h"

void agent_key(char room[17], uint64_t request, uint32_t member, uint32_t fence)
{
        memcpy(room, &request, 8);
        memcpy(room + 8, &member, 4);
        memcpy(room + 12, &fence, 4);
        room[16] = 0;
}

struct attempt *agent_find(struct agent *a, uint64_t request, uint32_t member, uint32_t fence)
{
        char key[17];
        agent_key(key, request, member, fence);
        return map_get(a->attempts, str_make(key, 16));
}

void agent_turn(void *arg)
{
        struct agent *a = arg;
        a->turn_set = false;
        if (a->stopping)
                return;
        attempt_schedule(a);
        journal_flush(a);
        sandbox_remove_left(a);
        for (size_t i = 0; i < a->backend_count; i++)
                a->backends[i]->runner->kind->flush(a->backends[i]->runner);
        stores_turn(a); /* first: what is given back for a silent store must not be given again */
        report_flush(a);
        offers_update(a, false);
        int64_t end = lease_clock_end(&a->lease);
        if (end != LEASE_CLOCK_NEVER && queues_count(a, ATTEMPT_WAITING) == 0 &&
            queues_count(a, ATTEMPT_STAGING) == 0 && queues_count(a, ATTEMPT_RUNNING) == 0) {
                lease_clock_release_all(&a->lease);
                timer_stop(a->lease_timer);
        }
}

void agent_turn_later(struct agent *a)
{
        if (!a->turn_set) {
                a->turn_set = true;
                loop_defer(a->loop, agent_turn, a);
        }
}
