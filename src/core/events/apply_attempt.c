/* Events about attempts: the match that begins one, what becomes of it, and its end. Each member has a
 * record, and the fence is the attempt's. */
#include <assert.h>

#include "base/mem.h"
#include "core/data/coming.h"
#include "core/events/apply_private.h"
#include "core/fairness/claim.h"
#include "core/match/give.h"

/* The attempt of a job is over: it goes to `next`. */
static void attempt_over(struct core *c, struct request *r, struct job *j, enum job_state next,
                         const struct event *e)
{
        struct set one = {0};

        apply_move(c, j, next, e->at_ms);
        set_add(&one, j->member);
        switch (next) {
        case JOB_IDLE: request_idle_add(c, r, &one); break;
        case JOB_HELD:
                apply_set_hold(j, e->code, e->subcode, e->reason);
                set_add(&request_rare_make(r)->held, j->member);
                break;
        case JOB_COMPLETED:
        case JOB_REMOVED:
                if (next == JOB_COMPLETED) {
                        set_add(&request_rare_make(r)->completed, j->member);
                        if (j->signaled || j->exit_code != 0)
                                set_add(&request_rare_make(r)->failed, j->member);
                } else {
                        set_add(&request_rare_make(r)->removed, j->member);
                }
                history_file(c, r, j->member, next, e->at_ms, j, 0);
                apply_drop_or_leave(c, r, j, e);
                give_room_made(c, r);
                claim_members_ended(c, r, 1);
                apply_finished_maybe(c, r, e->at_ms);
                break;
        default: assert(!"an attempt ends in idle, held, completed or removed");
        }
        set_deinit(&one);
}

/* The queue's table of resources has these names, too, and outlives the attempt. */
int job_set_more(struct core *c, struct job *j, struct str text)
{
        struct symbols_use *before;
        int r;

        free(j->more);
        free(j->more_text);
        j->more = NULL;
        j->more_text = NULL;
        if (text.n == 0)
                return 0;
        j->more = mem_new(struct amounts);
        j->more_text = str_dupz(text);
        before = symbols_use_set(c->symbols, symbols_use_keep(c->symbols));
        r = amounts_parse(c->symbols, text, j->more);
        symbols_use_set(c->symbols, before);
        return r;
}

int apply_matched(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        struct queue *q = queue_get(c, agent_get(c, e->agent), e->queue);

        q->logged = true;
        SET_FOREACH (&e->members, m) {
                if (request_state(r, (uint32_t)m) != JOB_IDLE)
                        return apply_damaged(err, e, "a job that is not idle");
        }
        request_idle_remove(c, r, &e->members);
        SET_FOREACH (&e->members, m) {
                struct job *j = request_job_make(c, r, (uint32_t)m);

                if (e->fence <= j->fence)
                        return apply_damaged(err, e, "a fence that was used before");
                j->fence = e->fence;
                j->cpus = e->cpus;
                j->memory_mib = e->memory_mib;
                j->disk_kib = e->disk_kib;
                j->lease_ms = e->lease_ms;
                if (job_set_more(c, j, e->more))
                        return apply_damaged(err, e, "the resources that it takes");
                apply_move(c, j, JOB_MATCHED, e->at_ms);
                j->accepted = j->unknown = false;
                queue_attach(q, j);
                coming_begin(c, j);
                lease_began(c, j);
                if (claim_begin(c, j, e->account, e->draws, e->at_ms, NULL))
                        return apply_damaged(err, e, "the limits that it draws on");
                joblog_event(j, e, q);
        }
        return 0;
}

/* The member's record, while it has the attempt that the event is about; else NULL. */
static struct job *attempt_of(struct request *r, const struct event *e, uint64_t member)
{
        struct job *j = request_job(r, (uint32_t)member);

        return j && j->queue && j->fence == e->fence ? j : NULL;
}

int apply_filled(struct request *r, const struct event *e, struct err *err)
{
        SET_FOREACH (&e->members, m) {
                struct job *j = attempt_of(r, e, m);

                if (!j)
                        return apply_damaged(err, e, "no such attempt");
                free(j->filled);
                j->filled = mem_dup(e->values.p, e->values.n);
                j->filled_n = e->values.n;
        }
        return 0;
}

int apply_set(struct request *r, const struct event *e, struct err *err)
{
        SET_FOREACH (&e->members, m) {
                struct job *j = attempt_of(r, e, m);

                if (!j || (e->type == EVENT_GO && j->set_size == 0))
                        return apply_damaged(err, e, "no such attempt");
                if (e->type == EVENT_GO) {
                        j->set_goes = true;
                        joblog_event(j, e, j->queue);
                        continue;
                }
                j->set_first = (uint32_t)(e->value >> 32);
                j->set_size = (uint32_t)e->value;
        }
        return 0;
}

static void start(struct core *c, struct job *j, int64_t started_ms, int64_t at_ms)
{
        apply_move(c, j, JOB_RUNNING, at_ms);
        j->starts++;
        j->started_ms = started_ms ? started_ms : at_ms;
        if (!j->first_started_ms)
                j->first_started_ms = j->started_ms;
        j->ended = false;
        eta_started(c, j);
}

static void take_result(struct core *c, struct job *j, const struct event *e)
{
        /* What the agent did not say before its result. */
        if (j->state == JOB_MATCHED)
                apply_move(c, j, JOB_STAGING, e->at_ms);
        if (j->state == JOB_STAGING && e->outcome == CORE_EXITED)
                start(c, j, e->started_ms, e->at_ms);
        if (e->outcome == CORE_EXITED) {
                j->completions++;
                j->ended = true;
                j->signaled = e->signaled;
                j->exit_code = e->exit_code;
                if (e->started_ms)
                        j->started_ms = e->started_ms;
        }
        j->ended_ms = e->ended_ms ? e->ended_ms : e->at_ms;
        if (j->started_ms && j->ended_ms > j->started_ms)
                j->wall_ms += j->ended_ms - j->started_ms;
        if (e->outcome == CORE_EXITED && !c->config.shadow && j->ended_ms >= j->started_ms)
                estimate_learn(c, request_part(j->request, j->member, NULL), j->queue,
                               j->ended_ms - j->started_ms, e->bytes_out);
        j->bytes_in += e->bytes_in;
        j->bytes_out += e->bytes_out;
        if (!c->replaying) {
                c->moved.bytes_in += e->bytes_in;
                c->moved.bytes_out += e->bytes_out;
        }
        j->cpu_user_ms += e->cpu_user_ms;
        j->cpu_system_ms += e->cpu_system_ms;
        if (e->memory_peak_bytes > j->memory_peak_bytes)
                j->memory_peak_bytes = e->memory_peak_bytes;
        if (e->outputs.n) {
                free(j->outputs);
                j->outputs = mem_dup(e->outputs.p, e->outputs.n);
                j->outputs_n = e->outputs.n;
        }
}

/* Events about attempts: each member has a record, and the fence is the attempt's. */
int apply_attempt(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        SET_FOREACH (&e->members, m) {
                struct job *j = attempt_of(r, e, m);
                struct queue *q;

                if (!j)
                        return apply_damaged(err, e, "no such attempt");
                q = j->queue;
                joblog_event(j, e, q);
                switch (e->type) {
                case EVENT_ACCEPTED:
                        queue_accepted(q, j);
                        if (j->state == JOB_MATCHED)
                                apply_move(c, j, JOB_STAGING, e->at_ms);
                        break;
                case EVENT_STARTED:
                        queue_accepted(q, j);
                        if (j->state == JOB_MATCHED)
                                apply_move(c, j, JOB_STAGING, e->at_ms);
                        if (j->state == JOB_STAGING)
                                start(c, j, e->value, e->at_ms);
                        break;
                case EVENT_EXITED:
                        take_result(c, j, e);
                        q->finished++;
                        attempt_over(c, r, j, (enum job_state)e->next, e);
                        break;
                case EVENT_LOST:
                case EVENT_REFUSED: attempt_over(c, r, j, (enum job_state)e->next, e); break;
                default: break;
                }
        }
        return 0;
}

/* Suspended, resumed, vacating: the attempt goes on, otherwise. */
int apply_control(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        enum job_state to = e->type == EVENT_SUSPENDED ? JOB_SUSPENDED
                            : e->type == EVENT_RESUMED ? JOB_RUNNING
                                                       : JOB_VACATING;

        SET_FOREACH (&e->members, m) {
                struct job *j = request_job(r, (uint32_t)m);

                if (!j || !j->queue || (j->state != JOB_VACATING && !sm_may(&job_states, j->state, to)))
                        return apply_damaged(err, e, "no such attempt");
                joblog_event(j, e, j->queue);
                if (to == JOB_SUSPENDED)
                        j->suspended_at_ms = e->at_ms;
                if (j->state != to)
                        apply_move(c, j, to, e->at_ms);
                if (to == JOB_VACATING) {
                        j->goal = (enum job_state)e->next;
                        apply_set_hold(j, e->code, e->subcode, e->reason);
                }
        }
        return 0;
}

int apply_checkpoint(struct request *r, const struct event *e, struct err *err)
{
        SET_FOREACH (&e->members, m) {
                struct job *j = attempt_of(r, e, m);

                if (!j)
                        return apply_damaged(err, e, "no such attempt");
                free(j->checkpoint);
                j->checkpoint = e->values.n ? mem_dup(e->values.p, e->values.n) : NULL;
                j->checkpoint_n = e->values.n;
                joblog_event(j, e, j->queue);
        }
        return 0;
}
