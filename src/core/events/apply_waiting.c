/* Events about members that wait: held, released, removed. */
#include "base/mem.h"
#include "core/events/apply_private.h"
#include "core/fairness/claim.h"
#include "core/match/give.h"

/* Some have a record, the others are in sets: there may be a million of those. */
struct waiting {
        struct set records, bare;
};

static void waiting_init(struct waiting *w, const struct request *r, const struct set *members)
{
        void *value;

        *w = (struct waiting){0};
        if (r->jobs && idmap_count(r->jobs) < set_count(members)) {
                for (size_t at = 0; idmap_next(r->jobs, &at, NULL, &value);)
                        if (set_has(members, ((struct job *)value)->member))
                                set_add(&w->records, ((struct job *)value)->member);
        } else if (r->jobs) {
                SET_FOREACH (members, m)
                        if (request_job(r, (uint32_t)m))
                                set_add(&w->records, (uint32_t)m);
        }
        set_copy(&w->bare, members);
        set_remove_all(&w->bare, &w->records);
}

static void waiting_deinit(struct waiting *w)
{
        set_deinit(&w->records);
        set_deinit(&w->bare);
}

static bool any_of(const struct set *members, const struct set *in)
{
        struct set both = {0};
        bool any;

        if (set_count(in) == 0)
                return false;
        set_copy(&both, members);
        set_keep_all(&both, in);
        any = set_count(&both) > 0;
        set_deinit(&both);
        return any;
}

/* The state of one of them from which it may not go there, or -1. */
static int wrong_state(const struct request *r, const struct waiting *w, enum job_state to)
{
        const struct request_rare *rare = request_rare(r);
        struct set idle = {0};
        bool any_idle;

        SET_FOREACH (&w->records, m) {
                enum job_state from = request_job(r, (uint32_t)m)->state;

                if (!sm_may(&job_states, from, to) || job_state_has_attempt(from))
                        return (int)from;
        }
        if (!sm_may(&job_states, JOB_COMPLETED, to) && any_of(&w->bare, &rare->completed))
                return JOB_COMPLETED;
        if (!sm_may(&job_states, JOB_REMOVED, to) && any_of(&w->bare, &rare->removed))
                return JOB_REMOVED;
        if (!sm_may(&job_states, JOB_HELD, to) && any_of(&w->bare, &rare->held))
                return JOB_HELD;
        if (sm_may(&job_states, JOB_IDLE, to))
                return -1;
        set_copy(&idle, &w->bare);
        set_remove_all(&idle, &rare->completed);
        set_remove_all(&idle, &rare->removed);
        set_remove_all(&idle, &rare->held);
        any_idle = set_count(&idle) > 0;
        set_deinit(&idle);
        return any_idle ? JOB_IDLE : -1;
}

/* One reason for all of them. */
static void hold_together(struct request *r, const struct event *e, const struct set *members)
{
        struct request_rare *rare = request_rare_make(r);
        struct hold_group *h;

        if (set_count(members) == 0)
                return;
        MEM_GROW(rare->holds, rare->hold_cap, rare->hold_count + 1);
        h = &rare->holds[rare->hold_count++];
        *h = (struct hold_group){
                .at_ms = e->at_ms, .code = e->code, .subcode = e->subcode, .reason = str_dupz(e->reason)};
        set_copy(&h->members, members);
}

/* Those with a record have their rows of history now, the others when they are filed. */
static void removed_together(struct core *c, struct request *r, const struct event *e,
                             const struct waiting *w)
{
        claim_members_ended(c, r, set_count(&e->members));
        c->unfiled += set_count(&w->bare);
        set_add_all(&request_rare_make(r)->unfiled, &w->bare);
        SET_FOREACH (&w->records, m) {
                struct job *j = request_job(r, (uint32_t)m);

                history_file(c, r, j->member, JOB_REMOVED, e->at_ms, j, 0);
                apply_drop_or_leave(c, r, j, e);
        }
        give_room_made(c, r);
        apply_finished_maybe(c, r, e->at_ms);
}

int apply_waiting(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        enum job_state to = e->type == EVENT_HELD       ? JOB_HELD
                            : e->type == EVENT_RELEASED ? JOB_IDLE
                                                        : JOB_REMOVED;
        struct request_rare *rare = request_rare_make(r);
        struct waiting w;
        int wrong;

        waiting_init(&w, r, &e->members);
        wrong = wrong_state(r, &w, to);
        if (wrong >= 0) {
                waiting_deinit(&w);
                return apply_damaged(err, e, job_state_name((enum job_state)wrong));
        }
        SET_FOREACH (&w.records, m) {
                struct job *j = request_job(r, (uint32_t)m);

                joblog_event(j, e, NULL);
                apply_move(c, j, to, e->at_ms);
                if (to == JOB_HELD)
                        apply_set_hold(j, e->code, e->subcode, e->reason);
        }
        if (to != JOB_IDLE)
                request_idle_remove(c, r, &e->members);
        set_remove_all(&rare->held, &e->members);
        request_hold_drop(r, &e->members);
        if (to == JOB_IDLE)
                request_idle_add(c, r, &e->members);
        else
                set_add_all(to == JOB_HELD ? &rare->held : &rare->removed, &e->members);
        joblog_event_of_all(r, e, &w.bare);
        if (to == JOB_HELD)
                hold_together(r, e, &w.bare);
        else if (to == JOB_REMOVED)
                removed_together(c, r, e, &w);
        waiting_deinit(&w);
        return 0;
}
