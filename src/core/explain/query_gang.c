/* Tells what a job's set waits for. */
#include <stdio.h>

#include "base/mem.h"
#include "core/gang/gang.h"
#include "core/match/gang_place.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/model/need.h"
#include "core/model/suits.h"

/* Returns how many such jobs the queue could run if it ran nothing else. */
static uint64_t room_ever(struct core *c, const struct job_class *k, struct queue *q)
{
        struct ad *whole;
        struct need need;
        uint64_t n;

        if (!agent_takes_jobs(q->agent) || !q->ad || !queue_allows_owner(q, k->owner) || k->leaks ||
            (k->labels & ~q->agent->cleared))
                return 0;
        whole = queue_whole_ad(c, q);
        n = queue_would_take(c, k->ad, whole) ? GANG_SIZE_MAX : 0;
        need_of(c, k, k->ad, whole, &need);
        ad_free(whole);
        if (n && need.cpus > 0 && q->total_cpus < INT64_MAX && (uint64_t)(q->total_cpus / need.cpus) < n)
                n = (uint64_t)(q->total_cpus / need.cpus);
        if (n && need.memory_mib > 0 && q->total_memory_mib < INT64_MAX &&
            (uint64_t)(q->total_memory_mib / need.memory_mib) < n)
                n = (uint64_t)(q->total_memory_mib / need.memory_mib);
        return n;
}

/* Returns the most members that could run together if nothing else ran. */
static uint64_t gang_most_ever(struct core *c, struct job_class *k)
{
        struct map *companies = map_new();
        struct core_agent **agents;
        uint64_t most = 0;
        size_t n;

        agents = agents_sorted(c, &n);
        for (size_t i = 0; i < n; i++)
                for (struct queue *q = agents[i]->queues; q; q = q->next) {
                        struct buf BUF_CLEANUP name = {.max = 1024};
                        uint64_t room = room_ever(c, k, q);

                        if (room == 0 || !gang_company(c, k, q, &name))
                                continue;
                        room += (uint64_t)(uintptr_t)map_get(companies, buf_view(&name));
                        map_put(companies, buf_view(&name), (void *)(uintptr_t)room);
                        most = room > most ? room : most;
                        eval_reset(&c->eval);
                }
        free(agents);
        map_free(companies);
        return most;
}

static void look_at_state(struct core *c, struct job_class *k, const struct gang *g, struct core_gang *ret)
{
        const struct set *blocks = set_count(&g->stops)                          ? &g->stops
                                   : set_count(&g->held) || set_count(&g->waits) ? &g->held
                                                                                 : &g->runs;
        struct buf BUF_CLEANUP where = {.max = sizeof(ret->where) - 1};

        if (set_count(&g->waits)) {
                ret->state = CORE_GANG_MATCHED;
        } else if (set_count(&g->idle) == 0 && set_count(&g->held) == 0 && set_count(&g->stops) == 0) {
                ret->state = CORE_GANG_STARTED;
        } else if (set_count(blocks)) {
                ret->state = CORE_GANG_BLOCKED;
                ret->member = (uint32_t)set_first(blocks);
                ret->blocked = request_state(g->request, ret->member);
        } else if (k && k->idle > 0 && !g->request->together) {
                ret->places = gang_most_now(c, k, &where);
                ret->places_ever = gang_most_ever(c, k);
                snprintf(ret->where, sizeof(ret->where), "%s", buf_check(&where) ? "" : buf_z(&where));
        }
}

int core_job_gang(struct core *c, uint64_t request, uint32_t member, struct core_gang *ret)
{
        struct request *r = request_find(c, request);
        const struct job_template *t;
        const struct bucket *b;
        uint32_t first, size;
        struct gang g;

        if (!r || member >= r->count || !gang_of(r, member, &first, &size))
                return CORE_UNKNOWN;
        t = request_part(r, member, NULL)->job_template;
        *ret = (struct core_gang){.first = first,
                                  .size = size,
                                  .within = (enum core_gang_within)t->gang.within,
                                  .reserved = r->together,
                                  .group_by = r->together ? STR_NONE : symbols_name(c->symbols, t->gang.by)};
        gang_look(r, first, &g);
        ret->left = size -
                    (uint32_t)set_count_range(&request_cold(r)->completed, first, (uint64_t)first + size) -
                    (uint32_t)set_count_range(&request_cold(r)->removed, first, (uint64_t)first + size);
        b = request_bucket(c, r, member);
        look_at_state(c, b ? b->job_class : NULL, &g, ret);
        gang_look_deinit(&g);
        return 0;
}
