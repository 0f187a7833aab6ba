#include "agent/model/agent.h"

#include <string.h>

void agent_key(char room[17], uint64_t request, uint32_t member, uint32_t fence)
{
        memcpy(room, &request, 8);
        memcpy(room + 8, &member, 4);
        memcpy(room + 12, &fence, 4);
        room[16] = 0;
}

struct attempt *agent_find(const struct agent *a, uint64_t request, uint32_t member, uint32_t fence)
{
        char key[17];

        agent_key(key, request, member, fence);
        return map_get(a->attempts, str_make(key, 16));
}

void agent_turn_later(struct agent *a)
{
        if (!a->turn_set) {
                a->turn_set = true;
                loop_defer(a->loop, a->turn, a);
        }
}
