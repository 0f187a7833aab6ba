/* Attempts only end as time passes, so free resources grow, and an ordinary job's room is checked only where
 * some is taken away: at the starts of the reservations that it may run into. */
#include "core/accounts/share.h"
#include "core/estimate/estimate.h"
#include "core/gang/reserve.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/reservation/advance.h"

#define START_SLACK_MS 30000 /* from the match until a job's own time begins */
#define STARTS_MAX     16u   /* most starts of a recurring reservation that are checked for a job */
#define TRIES_MAX      64u

/* Returns the longest time that a job of the class may run there: its author's limit, else the time within
 * which nine in ten similar jobs end. */
static int64_t runs_most_ms(struct core *c, const struct job_class *k, const struct queue *q)
{
        const struct bucket *b = job_class_first_bucket(k);
        const struct part *p = request_part_at(b->request, b->part);
        struct estimate_bounds bounds;

        if (p->job_template->allowed_ms)
                return p->job_template->allowed_ms;
        estimate_bounds(c, p, q, 0, &bounds);
        return bounds.most_ms;
}

static bool is_room(struct core *c, const struct queue *q, int64_t at_ms, const struct advance *own,
                    const struct need *need)
{
        bool now = at_ms <= c->now_ms; /* attempts that are overdue still hold their resources */
        int64_t cpus, memory_mib, kept_cpus, kept_memory_mib;

        for (const struct advance_place *p = q->advance; p; p = p->next)
                if (p->of->maintenance && p->of != own && advance_covers(p->of, at_ms))
                        return false;
        reserve_free_at(c, q, now ? INT64_MIN : at_ms, &cpus, &memory_mib);
        advance_kept(c, q, at_ms, own, &kept_cpus, &kept_memory_mib);
        for (const struct job *j = q->attempts; j;
             j = j->next) { /* attempts of the reservation use the kept resources */
                const struct advance_place *p = advance_place_at(q, advance_of_job(j));

                if (p && p->of != own && advance_covers(p->of, at_ms) &&
                    (now || reserve_ends_ms(c, (struct job *)j) > at_ms)) {
                        cpus += j->cpus;
                        memory_mib += (int64_t)j->memory_mib;
                }
        }
        return cpus - kept_cpus >= need->cpus && memory_mib - kept_memory_mib >= need->memory_mib;
}

/* Returns whether the reservation itself has room. */
static bool is_room_within(struct core *c, const struct job_class *k, const struct queue *q,
                           const struct advance_place *p, const struct need *need)
{
        int64_t cpus = p->cpus, memory_mib = p->memory_mib, allowed_ms = k->job_template->allowed_ms;

        if (!p->of->begun || c->now_ms >= p->of->end_ms ||
            (allowed_ms && c->now_ms + allowed_ms > p->of->end_ms))
                return false;
        for (const struct job *j = q->attempts; j; j = j->next)
                if (advance_of_job(j) == p->of->id) {
                        cpus -= j->cpus;
                        memory_mib -= (int64_t)j->memory_mib;
                }
        return need->cpus <= cpus && need->memory_mib <= memory_mib;
}

/* Returns whether a reservation other than `own` keeps resources of the queue now. */
static bool is_kept_now(const struct core *c, const struct queue *q, const struct advance_place *own)
{
        for (const struct advance_place *p = q->advance; p; p = p->next)
                if (p != own && !advance_is_placing(c, p->of) && advance_covers(p->of, c->now_ms))
                        return true;
        return false;
}

/* An offer may hold deliveries ahead of their turn, which wait at the agent for some seconds at most. They
 * are allowed until a reservation begins: START_SLACK_MS covers their wait. */
bool reserve_advance_allows(struct core *c, const struct job_class *k, const struct queue *q,
                            const struct need *need)
{
        const struct advance_place *own = advance_place_at(q, k->job_template->reservation);
        int64_t until_ms;

        if (k->job_template->reservation && (!own || !is_room_within(c, k, q, own, need)))
                return false;
        if (!q->advance)
                return true;
        until_ms = c->now_ms + START_SLACK_MS + runs_most_ms(c, k, q);
        if (is_kept_now(c, q, own) && !is_room(c, q, c->now_ms, own ? own->of : NULL, need))
                return false;
        for (const struct advance_place *p = q->advance; p; p = p->next) {
                int64_t start_ms = advance_start_at(p->of, c->now_ms);

                if (p == own || advance_is_placing(c, p->of))
                        continue;
                for (unsigned i = 0; i < STARTS_MAX && start_ms < until_ms; i++) {
                        if (start_ms > c->now_ms && !is_room(c, q, start_ms, own ? own->of : NULL, need))
                                return false;
                        if (!p->of->every_ms ||
                            advance_start_at(p->of, start_ms + p->of->every_ms) == start_ms)
                                break;
                        start_ms += p->of->every_ms;
                }
        }
        return true;
}

int64_t reserve_advance_after(struct core *c, const struct queue *q, int64_t at_ms, const struct need *need)
{
        for (unsigned i = 0; i < TRIES_MAX; i++) {
                int64_t next_ms = INT64_MAX;

                if (!q->advance || is_room(c, q, at_ms, NULL, need))
                        return at_ms;
                for (const struct advance_place *p = q->advance; p; p = p->next) {
                        int64_t end_ms = advance_start_at(p->of, at_ms) + p->of->end_ms - p->of->start_ms;

                        if (end_ms > at_ms && end_ms < next_ms)
                                next_ms = end_ms;
                }
                if (next_ms == INT64_MAX)
                        break;
                at_ms = next_ms;
        }
        return INT64_MAX;
}
