#include "core/model/place_wait.h"
#include "core/model/agent.h"
#include "core/model/request.h"

struct place_wait *place_wait_of(const struct request *r, uint32_t member)
{
        return request_cold(r)->waits ? idmap_get(request_cold(r)->waits, member) : NULL;
}

void place_wait_for(struct place_wait *w, struct queue *q)
{
        if (w->queue == q)
                return;
        if (w->queue)
                w->queue->promised--;
        w->queue = q;
        if (!q)
                return;
        w->before = q->promised++;
}

static void wait_free(struct place_wait *w)
{
        place_wait_for(w, NULL);
        free(w);
}

void place_wait_forget(struct request *r)
{
        void *wait;

        for (size_t at = 0; request_cold(r)->waits && idmap_next(request_cold(r)->waits, &at, NULL, &wait);)
                wait_free(wait);
        if (!r->cold)
                return;
        idmap_free(r->cold->waits);
        r->cold->waits = NULL;
}

void place_wait_left(struct request *r, const struct set *members)
{
        struct set gone = {0};
        uint64_t member;

        if (!request_cold(r)->waits)
                return;
        if (set_count(members) <= idmap_count(request_cold(r)->waits))
                set_copy(&gone, members);
        else
                for (size_t at = 0; idmap_next(request_cold(r)->waits, &at, &member, NULL);)
                        if (set_has(members, (uint32_t)member))
                                set_add(&gone, (uint32_t)member);
        SET_FOREACH (&gone, m) {
                struct place_wait *w = idmap_take(request_cold(r)->waits, m);

                if (w)
                        wait_free(w);
        }
        set_deinit(&gone);
        if (idmap_count(request_cold(r)->waits) == 0)
                place_wait_forget(r);
}
