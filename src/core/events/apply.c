/* Events are the only thing that changes requests and jobs: core_emit applies one and hands it to the world,
 * core_replay applies those of the log. So what a restart rebuilds is what was there.
 *
 * An event that cannot be applied (an illegal move, a request that is not there) is CORE_DAMAGED: from the
 * log it refuses the start, from a command it is a bug of ours and aborts.
 *
 * Events about attempts are in apply_attempt.c, those about members that wait in apply_waiting.c.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/data/coming.h"
#include "core/events/apply_private.h"
#include "core/fairness/claim.h"
#include "core/gang/gang.h"
#include "core/lifecycle/leave.h"
#include "core/model/forgotten.h"
#include "core/model/split.h"

int apply_damaged(struct err *err, const struct event *e, const char *what)
{
        return err_set(err, CORE_DAMAGED, "the record \"%s\" of request %llu cannot be: %s",
                       event_name(e->type), (unsigned long long)e->request, what);
}

void apply_move(struct core *c, struct job *j, enum job_state to, int64_t at_ms)
{
        bool had = job_state_has_attempt(j->state), has = job_state_has_attempt(to);
        bool ran = job_state_runs(j->state), runs = job_state_runs(to);

        sm_check(&job_states, j->state, to);
        if (j->suspended_at_ms && j->state == JOB_SUSPENDED && to != JOB_SUSPENDED) {
                j->suspended_ms += at_ms - j->suspended_at_ms;
                j->suspended_at_ms = 0;
        }
        if (ran != runs) { /* it has a queue now, before what follows */
                j->request->running += runs ? 1 : (uint32_t)-1;
                j->queue->running += runs ? 1 : (uint32_t)-1;
        }
        if (had && !has) {
                j->set_size = 0;
                j->set_goes = false;
                claim_end(c, j, at_ms);
                coming_end(c, j);
                queue_detach(j->queue, j);
                j->request->active--;
        } else if (!had && has) {
                j->request->active++;
        }
        j->state = to;
        j->entered_ms = at_ms;
}

void apply_set_hold(struct job *j, int32_t code, int32_t subcode, struct str reason)
{
        free(j->hold_reason);
        j->hold_reason = str_dupz(reason);
        j->hold_code = code;
        j->hold_subcode = subcode;
}

void apply_finished_maybe(struct core *c, struct request *r, int64_t at_ms)
{
        if (!request_ended(r) || set_count(&request_rare(r)->unfiled))
                return;
        if (!request_rare(r)->finished_ms) {
                request_rare_make(r)->finished_ms = at_ms ? at_ms : 1;
                request_inputs_free(c, r);
        }
        if (set_count(&request_rare(r)->left)) /* it is not to be forgotten */
                return;
        MEM_GROW(c->finished, c->finished_cap, c->finished_count + 1);
        c->finished[c->finished_count++] = r->id;
        c->crowded |= claim_crowded(r);
}

void apply_drop_or_leave(struct core *c, struct request *r, struct job *j, const struct event *e)
{
        if (e->stays)
                leave_stay(c, r, j);
        else
                request_job_drop(r, j);
}

/* Classes cost memory and time whoever looks at the queue, so no account has any number of them. */
static int refuse_classes(struct core *c, const struct request *r, struct err *err)
{
        for (size_t i = 0; i < r->bucket_count; i++) {
                const struct bucket *b = r->buckets[i];

                if (b->class->idle == set_count(&b->idle) &&
                    b->class->account->ready > c->config.account_classes_max)
                        return err_set(
                                err, CORE_INVALID,
                                "the waiting jobs of %s differ in more than %u ways in what they require: "
                                "wait until some have started, or ask for the same in more of them",
                                b->class->account->path, c->config.account_classes_max);
        }
        return 0;
}

/* A draft has been loaded and split. */
static int accept_draft(struct core *c, struct request *r, struct err *err)
{
        struct set all = {0};
        int result;

        request_show(c, r);
        set_add_range(&all, 0, r->count);
        request_idle_add(c, r, &all);
        set_deinit(&all);
        result = refuse_classes(c, r, err);
        if (!result)
                return 0;
        request_buckets_free(c, r);
        request_hide(c, r);
        return result;
}

static int load_submitted(struct core *c, const struct event *e, struct err *err)
{
        struct request *r = request_new(e->request, e->at_ms, (uint32_t)e->value);
        struct buf BUF_CLEANUP record = {0};
        struct submission stored = {0};
        struct set all = {0};
        int result = 0;

        if (!c->config.shadow) {
                result = c->world.load(c->world.arg, r->id, &record, err);
                if (!result)
                        result = submission_unpack(&stored, buf_view(&record), err);
                if (!result)
                        result = request_load(c, r, &stored, err);
                submission_deinit(&stored);
        }
        if (result) {
                request_free(c, r);
                return result;
        }
        request_show(c, r);
        request_split(c, r);
        set_add_range(&all, 0, r->count);
        request_idle_add(c, r, &all);
        set_deinit(&all);
        return 0;
}

/* Numbers come in the order in which their submits began, and may be accepted in another. */
static int apply_submitted(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        int result;

        if (r || e->request == 0)
                return apply_damaged(err, e, "the number was given before");
        if (e->value <= 0 || e->value > SUBMISSION_MEMBERS_MAX)
                return apply_damaged(err, e, "the number of jobs");
        result = c->submitting ? accept_draft(c, c->submitting, err) : load_submitted(c, e, err);
        if (!result && e->request > c->last_id)
                c->last_id = e->request;
        return result;
}

static void apply_priority(struct core *c, struct request *r, const struct event *e)
{
        struct request_rare *rare = request_rare_make(r);
        struct priority_group *g;

        for (size_t i = 0; i < rare->priority_count;) {
                g = &rare->priorities[i];
                set_remove_all(&g->members, &e->members);
                if (set_count(&g->members)) {
                        i++;
                        continue;
                }
                set_deinit(&g->members);
                *g = rare->priorities[--rare->priority_count];
        }
        MEM_GROW(rare->priorities, rare->priority_cap, rare->priority_count + 1);
        g = &rare->priorities[rare->priority_count++];
        *g = (struct priority_group){.priority = e->value};
        set_copy(&g->members, &e->members);
        if (!c->config.shadow)
                request_set_priority(c, r, &e->members, e->value);
}

static void apply_filed(struct core *c, struct request *r, const struct event *e)
{
        SET_FOREACH (&e->members, m) {
                if (set_has(&request_rare(r)->left, (uint32_t)m))
                        leave_go(c, r, (uint32_t)m);
                else
                        history_file(c, r, (uint32_t)m, JOB_REMOVED, e->at_ms, NULL, 0);
        }
        c->unfiled -= set_count(&request_rare(r)->unfiled);
        set_remove_all(&request_rare_make(r)->unfiled, &e->members);
        c->unfiled += set_count(&request_rare(r)->unfiled);
        apply_finished_maybe(c, r, e->at_ms);
}

static int apply_purged(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        struct forgotten_request f;

        if (!request_ended(r))
                return apply_damaged(err, e, "it has not ended");
        if (e->values.n && forgotten_unpack_one(e->values, &f) != 0)
                return apply_damaged(err, e, "its uuid");
        for (size_t i = 0; i < c->finished_count; i++)
                if (c->finished[i] == r->id) {
                        memmove(c->finished + i, c->finished + i + 1,
                                (--c->finished_count - i) * sizeof(*c->finished));
                        break;
                }
        f.id = r->id;
        request_free(c, r);
        if (e->values.n)
                forgotten_add(c->forgotten, &f, e->at_ms);
        return 0;
}

static int apply(struct core *c, const struct event *e, struct err *err)
{
        struct request *r = request_find(c, e->request);

        if (e->type == EVENT_SUBMITTED)
                return apply_submitted(c, r, e, err);
        if (!r)
                return apply_damaged(err, e, "there is no such request");
        if (set_count(&e->members) && set_next(&e->members, r->count) != SET_END)
                return apply_damaged(err, e, "a job that the request does not have");
        switch (e->type) {
        case EVENT_MATCHED: return apply_matched(c, r, e, err);
        case EVENT_FILLED: return apply_filled(r, e, err);
        case EVENT_SET:
        case EVENT_GO: return apply_set(r, e, err);
        case EVENT_ACCEPTED:
        case EVENT_REFUSED:
        case EVENT_STARTED:
        case EVENT_EXITED:
        case EVENT_LOST: return apply_attempt(c, r, e, err);
        case EVENT_HELD:
        case EVENT_RELEASED:
        case EVENT_REMOVED: return apply_waiting(c, r, e, err);
        case EVENT_VACATING:
        case EVENT_SUSPENDED:
        case EVENT_RESUMED: return apply_control(c, r, e, err);
        case EVENT_PRIORITY: apply_priority(c, r, e); return 0;
        case EVENT_FILED: apply_filed(c, r, e); return 0;
        case EVENT_CHECKPOINTED: return apply_checkpoint(r, e, err);
        case EVENT_LEASE_ENDED: request_rare_make(r)->hop.lease_over = true; return 0;
        case EVENT_RESULTS_TAKEN: set_add_all(&request_rare_make(r)->hop.taken, &e->members); return 0;
        case EVENT_PURGED: return apply_purged(c, r, e, err);
        case EVENT_SUBMITTED:
        case EVENT_TYPES: break;
        }
        return apply_damaged(err, e, "its type");
}

int core_emit(struct core *c, struct event *e, struct err *err)
{
        struct err why = {{0}};
        int r;

        if (e->type != EVENT_SUBMITTED) /* that says when it came */
                e->at_ms = c->now_ms;
        leave_mark(c, e);
        r = apply(c, e, &why);
        if (r && e->type != EVENT_SUBMITTED) {
                fprintf(stderr, "core: %s\n", why.text);
                abort();
        }
        if (r) {
                if (err)
                        *err = why;
                return r;
        }
        c->world.event(c->world.arg, e);
        leave_look(c, e);
        gang_event(c, e);
        return 0;
}

int core_replay(struct core *c, struct str record, struct err *err)
{
        struct event e;
        int r;

        r = event_unpack(&e, record, err);
        if (r)
                return r == -EBADMSG ? CORE_DAMAGED : r;
        c->replaying = true;
        r = apply(c, &e, err);
        c->replaying = false;
        if (r == 0 && c->world.replayed)
                c->world.replayed(c->world.arg, &e);
        event_deinit(&e);
        return r;
}
