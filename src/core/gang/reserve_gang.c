/* Simulates each company of queues (one, those of a group, or all) forward: as attempts end each queue has
 * room for more members, until the whole gang fits. The company where it fits soonest is chosen. */
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/model/suits.h"

#define TIMELINES_MAX 500u    /* most queues that are evaluated in full */
#define STEPS_MAX     200000u /* steps of expressions after which no more queues are examined */

struct capacity_timeline {
        struct queue *queue;
        struct need need;
        int64_t cpus, memory_mib; /* free resources */
        uint64_t room;            /* number of members that fit */
        size_t company;
};
struct ending {
        int64_t at_ms;
        size_t timeline;
        int64_t cpus, memory_mib;
};
struct company {
        uint64_t room;
        bool passed; /* one of its queues was given to a class behind this one */
};
struct simulation {
        struct capacity_timeline *timelines;
        size_t timeline_count, timeline_cap;
        struct ending *endings;
        size_t ending_count, ending_cap;
        struct company *companies;
        size_t company_count, company_cap;
        struct map *names; /* name of a company → number + 1 */
};

static void simulation_deinit(struct simulation *p)
{
        free(p->timelines);
        free(p->endings);
        free(p->companies);
        map_free(p->names);
}

static uint64_t room_of(const struct capacity_timeline *l)
{
        uint64_t n = GANG_SIZE_MAX;

        if (l->need.cpus > 0)
                n = l->cpus > 0 ? (uint64_t)(l->cpus / l->need.cpus) : 0;
        if (l->need.memory_mib > 0 && n > 0) {
                uint64_t m = l->memory_mib > 0 ? (uint64_t)(l->memory_mib / l->need.memory_mib) : 0;

                n = m < n ? m : n;
        }
        return n;
}

static size_t company_get(struct simulation *p, struct str name)
{
        size_t at = (size_t)(uintptr_t)map_get(p->names, name);

        if (at)
                return at - 1;
        MEM_GROW(p->companies, p->company_cap, p->company_count + 1);
        p->companies[p->company_count] = (struct company){0};
        map_put(p->names, name, (void *)(uintptr_t)++p->company_count);
        return p->company_count - 1;
}

static void add_queue(struct core *c, struct job_class *k, struct queue *q, struct simulation *p)
{
        struct buf BUF_CLEANUP name = {.max = 1024};
        struct company *of;
        struct ad *whole;
        struct capacity_timeline l = {.queue = q};
        bool yes;

        if (q->total_cpus == INT64_MAX || !reserve_may_use(c, k, q) || !gang_company(c, k, q, &name))
                return;
        whole = queue_whole_ad(c, q);
        yes = queue_would_take(c, k->ad, whole);
        ad_free(whole);
        if (!yes)
                return;
        need_of(c, k, k->ad, q->ad, &l.need);
        reserve_free_now(c, q, &l.cpus, &l.memory_mib);
        l.room = room_of(&l);
        l.company = company_get(p, buf_view(&name));
        of = &p->companies[l.company];
        of->room += l.room;
        of->passed |= reserve_was_passed(c, k, q);
        for (struct job *j = q->attempts; j; j = j->next) {
                MEM_GROW(p->endings, p->ending_cap, p->ending_count + 1);
                p->endings[p->ending_count++] = (struct ending){reserve_ends_ms(c, j), p->timeline_count,
                                                                j->cpus, (int64_t)j->memory_mib};
        }
        MEM_GROW(p->timelines, p->timeline_cap, p->timeline_count + 1);
        p->timelines[p->timeline_count++] = l;
}

static void add_queues(struct core *c, struct job_class *k, struct simulation *p)
{
        size_t n;
        struct core_agent **agents = agents_sorted(c, &n);
        uint64_t steps = core_steps(c);

        for (size_t i = 0; i < n; i++)
                for (struct queue *q = agents[i]->queues;
                     q && p->timeline_count < TIMELINES_MAX && core_steps(c) - steps < STEPS_MAX; q = q->next)
                        add_queue(c, k, q, p);
        account_evaluated(k->account, c->steady_ms, core_steps(c) - steps);
        free(agents);
        eval_reset(&c->eval);
}

static int reserve_gang_by_time(const void *x, const void *y)
{
        const struct ending *a = x, *b = y;

        return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

/* Finds the company that has room for `size` members first, and when; false: never. */
static bool soonest(struct core *c, struct simulation *p, uint64_t size, size_t *ret, int64_t *ret_ms)
{
        *ret_ms = c->now_ms;
        for (*ret = 0; *ret < p->company_count; ++*ret)
                if (p->companies[*ret].passed && p->companies[*ret].room >= size)
                        return true;
        if (p->ending_count > 1)
                qsort(p->endings, p->ending_count, sizeof(*p->endings), reserve_gang_by_time);
        for (size_t i = 0; i < p->ending_count; i++) {
                const struct ending *e = &p->endings[i];
                struct capacity_timeline *l = &p->timelines[e->timeline];
                struct company *of = &p->companies[l->company];
                uint64_t room;

                l->cpus += e->cpus;
                l->memory_mib += e->memory_mib;
                room = room_of(l);
                of->room += room - l->room;
                l->room = room;
                *ret = l->company;
                *ret_ms = e->at_ms > c->now_ms ? e->at_ms : c->now_ms;
                if (of->passed && of->room >= size)
                        return true;
        }
        return false;
}

static int by_room(const void *x, const void *y)
{
        const struct capacity_timeline *a = x, *b = y;

        if (a->room != b->room)
                return a->room > b->room ? -1 : 1;
        return (a->queue->index.serial > b->queue->index.serial) -
               (a->queue->index.serial < b->queue->index.serial);
}

/* Takes as many of the company's queues as are needed, those with most room first. */
static size_t take_places(struct simulation *p, size_t company, uint64_t size, struct reserved *places)
{
        size_t n = 0;

        qsort(p->timelines, p->timeline_count, sizeof(*p->timelines), by_room);
        for (size_t i = 0; i < p->timeline_count && size > 0; i++) {
                const struct capacity_timeline *l = &p->timelines[i];
                uint64_t here = l->room < size ? l->room : size;

                if (l->company != company || here == 0)
                        continue;
                size -= here;
                places[n] = (struct reserved){.queue = l->queue, .need = l->need};
                places[n].need.cpus *= (int64_t)here;
                places[n].need.memory_mib *= (int64_t)here;
                n++;
        }
        return n;
}

bool reserve_gang_find(struct core *c, struct job_class *k, struct reserved **ret_places, size_t *ret_count,
                       int64_t *ret_start_ms)
{
        struct simulation p = {.names = map_new()};
        uint64_t size = gang_first_size(k);
        size_t company;
        bool found;

        if (size > 0)
                add_queues(c, k, &p);
        found = p.timeline_count > 0 && soonest(c, &p, size, &company, ret_start_ms);
        if (found) {
                *ret_places = mem_array(NULL, p.timeline_count, sizeof(**ret_places));
                *ret_count = take_places(&p, company, size, *ret_places);
        }
        simulation_deinit(&p);
        return found;
}
