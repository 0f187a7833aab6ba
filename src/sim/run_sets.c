/* Sets of jobs that start together: how long each waited, and whether it started by the time that was kept
 * for it. What was planned first counts: attempts may end before their time, but never after what their users
 * asked for, so others that go in between must not make it later. */
#include "base/mem.h"
#include "core/query.h"
#include "sim/run_state.h"

#define ROUNDED_MS 1000 /* of the run times that users ask for */

void run_sets_submitted(struct run *r, uint64_t request, uint32_t first)
{
        const struct sim_job *j = &r->w->jobs[first];

        for (uint32_t i = 0; j->set && i < j->together; i += j->set) {
                MEM_GROW(r->sets, r->set_cap, r->set_count + 1);
                r->sets[r->set_count++] =
                        (struct waiting_set){.request = request, .member = i, .job = first + i};
        }
}

void run_sets_look(struct run *r)
{
        for (size_t i = 0; i < r->set_count; i++) {
                struct waiting_set *s = &r->sets[i];
                struct core_reservation kept;

                if (s->kept_ms ||
                    core_job_reservation(sim_world_core(r->world), s->request, s->member, &kept) ||
                    !kept.first)
                        continue;
                s->kept_ms = kept.start_ms;
                r->sets_kept++;
                r->m->sets_reserved++;
        }
}

void run_sets_start(struct run *r, uint64_t request, uint32_t member)
{
        size_t i = 0;

        while (i < r->set_count && (r->sets[i].request != request || r->sets[i].member != member))
                i++;
        if (i == r->set_count)
                return; /* not the first of its set, or it started before, and its agent failed */
        MEM_GROW(r->m->set_waits, r->m->set_wait_cap, r->m->sets + 1);
        r->m->set_waits[r->m->sets++] = (double)(run_now(r) - r->times[r->sets[i].job].submitted) / 1000;
        if (r->sets[i].kept_ms) {
                r->sets_kept--;
                r->m->sets_late += run_now(r) > r->sets[i].kept_ms + ROUNDED_MS;
        }
        r->sets[i] = r->sets[--r->set_count];
}

void run_sets_given(struct run *r, uint32_t job)
{
        if (r->sets_kept && r->w->jobs[job].set == 0)
                r->m->backfilled++;
}
