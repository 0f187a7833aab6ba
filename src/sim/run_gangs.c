/* Gangs, jobs that start together: how long each waited, and whether it started by the time that was kept
 * for it. What was planned first counts: attempts may end before their time, but never after what their users
 * asked for, so others that go in between must not make it later. */
#include "base/mem.h"
#include "core/query.h"
#include "sim/run_state.h"

#define ROUNDED_MS 1000 /* of the run times that users ask for */

void run_gangs_submitted(struct run *r, uint64_t request, uint32_t first)
{
        const struct sim_job *j = &r->w->jobs[first];

        for (uint32_t i = 0; j->gang && i < j->together; i += j->gang) {
                MEM_GROW(r->gangs, r->gang_cap, r->gang_count + 1);
                r->gangs[r->gang_count++] =
                        (struct waiting_gang){.request = request, .member = i, .job = first + i};
        }
}

void run_gangs_look(struct run *r)
{
        for (size_t i = 0; i < r->gang_count; i++) {
                struct waiting_gang *s = &r->gangs[i];
                struct core_reservation kept;

                if (s->kept_ms ||
                    core_job_reservation(sim_world_core(r->world), s->request, s->member, &kept) ||
                    !kept.first)
                        continue;
                s->kept_ms = kept.start_ms;
                r->gangs_kept++;
                r->m->gangs_reserved++;
        }
}

void run_gangs_start(struct run *r, uint64_t request, uint32_t member)
{
        size_t i = 0;

        while (i < r->gang_count && (r->gangs[i].request != request || r->gangs[i].member != member))
                i++;
        if (i == r->gang_count)
                return; /* not the first of its gang, or it started before, and its agent failed */
        MEM_GROW(r->m->gang_waits, r->m->gang_wait_cap, r->m->gangs + 1);
        r->m->gang_waits[r->m->gangs++] = (double)(run_now(r) - r->times[r->gangs[i].job].submitted) / 1000;
        if (r->gangs[i].kept_ms) {
                r->gangs_kept--;
                r->m->gangs_late += run_now(r) > r->gangs[i].kept_ms + ROUNDED_MS;
        }
        r->gangs[i] = r->gangs[--r->gang_count];
}

void run_gangs_given(struct run *r, uint32_t job)
{
        if (r->gangs_kept && r->w->jobs[job].gang == 0)
                r->m->backfilled++;
}
