/* Members go in groups: of one bucket, under one fence, each taking the same of the queue. A group is one
 * event and one assignment. */
#include "core/give.h"

#include "classad/match.h"
#include "core/choose.h"

/* How many members are tried when a queue's expression looks at what differs from job to job. */
#define LATE_TRIES 16u

struct group {
        struct class *class;
        struct bucket *bucket;
        struct queue *queue;
        struct set members;
        uint32_t fence;   /* of all of them */
        struct need need; /* of each of them */
        unsigned tries;   /* members that the queue did not want */
};

enum add { ADD_DONE, ADD_SKIPPED, ADD_FULL };

static uint32_t next_fence(const struct request *r, uint32_t member)
{
        const struct job *j = request_job(r, member);

        return j ? j->fence + 1 : 1;
}

/* The queue's word on one member, when its expressions look at more than the class. */
static bool member_allowed(struct core *c, const struct queue *q, const struct request *r, uint32_t member)
{
        struct ad *ad;
        bool yes;

        if (!q->job_specific)
                return true;
        ad = member_ad(c, r, member, request_job(r, member));
        yes = match_one_way(&c->eval, q->ad, ad);
        ad_free(ad);
        return yes;
}

/* All that one more member takes, from the queue and elsewhere: is it there? */
static bool may_take(struct core *c, const struct group *g, struct need *ret)
{
        return choose_fits(c, g->class, g->queue, ret);
}

static void take(struct core *c, const struct group *g)
{
        need_take(c, &g->need, g->queue);
}

static enum add group_add(struct core *c, struct group *g, uint32_t member)
{
        uint32_t fence = next_fence(g->bucket->request, member);
        bool first = set_count(&g->members) == 0;
        struct need need;

        if (!first && fence != g->fence)
                return ADD_FULL;
        if (!may_take(c, g, &need) || (!first && !need_same(&need, &g->need)))
                return ADD_FULL;
        if (!member_allowed(c, g->queue, g->bucket->request, member))
                return ++g->tries == LATE_TRIES ? ADD_FULL : ADD_SKIPPED;
        g->need = need;
        g->fence = fence;
        set_add(&g->members, member);
        take(c, g);
        return ADD_DONE;
}

/* Fills the group with members of its bucket, in the order in which this queue should have them. */
static void group_fill(struct core *c, struct group *g)
{
        SET_FOREACH (&g->bucket->idle, m) {
                if (group_add(c, g, (uint32_t)m) == ADD_FULL)
                        break;
        }
        eval_reset(&c->eval);
}

static void group_hand_out(struct core *c, const struct group *g)
{
        struct core_assignment a = {
                .agent = g->queue->agent->name,
                .queue = g->queue->name,
                .serial = g->queue->serial,
                .request = g->bucket->request->id,
                .part = g->bucket->part,
                .fence = g->fence,
                .members = &g->members,
                .lease_ms = (uint64_t)g->class->lease_ms,
        };
        struct event e = {
                .type = EVENT_MATCHED,
                .request = a.request,
                .members = g->members,
                .fence = g->fence,
                .agent = str_of(a.agent),
                .queue = str_of(a.queue),
                .cpus = (uint32_t)g->need.cpus,
                .memory_mib = (uint64_t)g->need.memory_mib,
                .disk_kib = (uint64_t)g->need.disk_kib,
                .lease_ms = a.lease_ms,
        };

        core_emit(c, &e, NULL);
        c->world.assign(c->world.arg, &a);
}

uint64_t give(struct core *c, struct class *k, struct queue *q)
{
        uint64_t given = 0, n = 1;

        while (k->idle > 0 && n > 0) {
                struct group g = {.class = k, .bucket = class_first_bucket(k), .queue = q};

                group_fill(c, &g);
                n = set_count(&g.members);
                if (n)
                        group_hand_out(c, &g);
                set_deinit(&g.members);
                given += n;
        }
        return given;
}
