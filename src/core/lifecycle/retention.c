#include "core/lifecycle/retention.h"
#include "core/classes/member_ad.h"
#include "core/events/apply.h"
#include "core/model/core_parts.h"

#define LOOK_SLICE 100u /* evaluations in one call */
#define LOOK_STEPS 200u /* steps that count as one more evaluation */

/* Limit of the steps of one evaluation: there may be one for each end of a job. */
#define LEAVE_STEPS 5000u

static bool ends(const struct event *e)
{
        switch (e->type) {
        case EVENT_REMOVED: return true;
        case EVENT_EXITED:
        case EVENT_LOST:
        case EVENT_REFUSED: return e->next == JOB_COMPLETED || e->next == JOB_REMOVED;
        default: return false;
        }
}

void retention_mark(struct core *c, struct event *e)
{
        const struct request *r = ends(e) ? request_find(c, e->request) : NULL;

        e->stays = r && r->leaves && c->requests->left < RETENTION_MAX;
}

static bool wants_to_stay(struct core *c, const struct request *r, uint32_t member)
{
        struct ad *ad = member_ad(c, r, member, request_job(r, member));
        uint32_t steps_max = c->eval.steps_max;
        struct value v;
        bool stays;

        c->eval.steps_max = LEAVE_STEPS;
        eval_attr(&c->eval, ad, NULL, c->attr.LeaveJobInQueue, &v);
        stays = value_is_true(&v);
        c->eval.steps_max = steps_max;
        eval_reset(&c->eval);
        ad_free(ad);
        return stays;
}

static void emit_gone(struct core *c, struct request *r, struct set *gone)
{
        struct event e = {.type = EVENT_FILED, .request = r->id, .members = *gone};

        if (set_count(gone))
                core_emit(c, &e, NULL);
        set_deinit(gone);
}

/* Evaluates retained members from `from` on, and lets those leave whose expression is false. Returns the next
 * member to look at; SET_END: none is left. */
static uint64_t look_at(struct core *c, struct request *r, const struct set *members, uint64_t from,
                        unsigned *budget)
{
        struct set gone = {0};
        uint64_t m;

        for (m = set_next(members, from); m != SET_END && *budget; m = set_next(members, m + 1)) {
                uint64_t steps = core_steps(c);
                unsigned took;

                if (!wants_to_stay(c, r, (uint32_t)m))
                        set_add(&gone, (uint32_t)m);
                took = 1 + (unsigned)((core_steps(c) - steps) / LOOK_STEPS);
                *budget -= took < *budget ? took : *budget;
        }
        emit_gone(c, r, &gone);
        return m;
}

void retention_look(struct core *c, const struct event *e)
{
        unsigned budget = LOOK_SLICE; /* retention_tick looks at the rest */
        struct request *r = e->stays ? request_find(c, e->request) : NULL;
        struct set mine = {0};

        if (!r || c->retention->later || set_count(&request_cold(r)->left) == 0)
                return;
        set_copy(&mine, &request_cold(r)->left); /* the smaller set: events may have a million members */
        set_keep_all(&mine, &e->members);
        look_at(c, r, &mine, 0, &budget);
        set_deinit(&mine);
}

uint64_t retention_remove(struct core *c, struct request *r, const struct set *members)
{
        struct set gone = {0};
        uint64_t n;

        set_copy(&gone, &request_cold(r)->left);
        if (members)
                set_keep_all(&gone, members);
        n = set_count(&gone);
        emit_gone(c, r, &gone);
        return n;
}

int64_t retention_tick(struct core *c)
{
        unsigned budget = LOOK_SLICE;

        if (c->requests->left == 0 || c->config.shadow)
                return INT64_MAX;
        if (!c->retention->request && c->steady_ms < c->retention->due_ms)
                return c->retention->due_ms - c->steady_ms;
        for (struct request *r = c->requests->first; r; r = r->next) {
                if (r->id < c->retention->request || set_count(&request_cold(r)->left) == 0)
                        continue;
                c->retention->member =
                        look_at(c, r, &request_cold(r)->left,
                                r->id == c->retention->request ? c->retention->member : 0, &budget);
                c->retention->request = r->id;
                if (c->retention->member != SET_END)
                        return 0;
        }
        c->retention->request = 0;
        c->retention->due_ms = c->steady_ms + c->config.periodic_ms;
        return c->config.periodic_ms;
}
