/* Only events change requests and jobs: core_emit applies one and hands it to the world, core_replay applies
 * those of the log. A restart therefore rebuilds the same state.
 *
 * An event that cannot be applied (an illegal move, an unknown request) is CORE_DAMAGED: in the log it
 * prevents the start, in a command it is a bug and aborts.
 */
#include "core/events/apply.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "bank/bank.h"
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/classes/admission.h"
#include "core/classes/bucket.h"
#include "core/classes/split.h"
#include "core/data/cost_class.h"
#include "core/data/data_state.h"
#include "core/data/inflight_transfers.h"
#include "core/data/inputs.h"
#include "core/data/space.h"
#include "core/estimate/estimate.h"
#include "core/events/history.h"
#include "core/fairness/charge.h"
#include "core/model/core_parts.h"
#include "core/model/edit.h"
#include "core/model/forgotten.h"
#include "core/reservation/advance.h"

static int apply_damaged(struct err *err, const struct event *e, const char *what)
{
        return err_set(err, CORE_DAMAGED, "the record \"%s\" of request %llu cannot be: %s",
                       event_name(e->type), (unsigned long long)e->request, what);
}

/* Changes a job's state as an event says, with the counts that depend on it. The move must be allowed. */
static void apply_move(struct core *c, struct job *j, enum job_state to, int64_t at_ms)
{
        bool had = job_state_has_attempt(j->state), has = job_state_has_attempt(to);
        bool ran = job_state_runs(j->state), runs = job_state_runs(to);

        sm_check(&job_states, j->state, to);
        if (j->suspended_at_ms && j->state == JOB_SUSPENDED && to != JOB_SUSPENDED) {
                j->suspended_ms += at_ms - j->suspended_at_ms;
                j->suspended_at_ms = 0;
        }
        if (ran != runs) { /* before the code below detaches the queue */
                j->request->running += runs ? 1 : (uint32_t)-1;
                j->queue->running += runs ? 1 : (uint32_t)-1;
        }
        if (had && !has) {
                j->gang_size = 0;
                j->gang_goes = false;
                charge_end(c, j, at_ms);
                inflight_end(c, j);
                queue_detach(j->queue, j);
                j->request->active--;
        } else if (!had && has) {
                j->request->active++;
        }
        j->state = to;
        j->entered_ms = at_ms;
}

/* Records why j is, or will be, held; copies the reason. */
static void apply_set_hold(struct job *j, int32_t code, int32_t subcode, struct str reason)
{
        free(j->hold_reason);
        j->hold_reason = str_dupz(reason);
        j->hold_code = code;
        j->hold_subcode = subcode;
}

/* If all jobs of r have ended and are in history, lists r as finished, to be forgotten later. */
static void apply_finished_maybe(struct core *c, struct request *r, int64_t at_ms)
{
        if (!request_ended(r) || set_count(&request_cold(r)->unfiled))
                return;
        if (!request_cold(r)->finished_ms) {
                request_cold_make(r)->finished_ms = at_ms ? at_ms : 1;
                request_inputs_free(c, r);
        }
        if (set_count(&request_cold(r)->left)) /* retained jobs keep the request from being forgotten */
                return;
        MEM_GROW(c->requests->finished, c->requests->finished_cap, c->requests->finished_count + 1);
        c->requests->finished[c->requests->finished_count++] = r->id;
        c->requests->crowded |= charge_crowded(r);
}

void retention_stay(struct core *c, struct request *r, struct job *j)
{
        set_add(&request_cold_make(r)->left, j->member);
        c->requests->left++;
}

void retention_go(struct core *c, struct request *r, uint32_t member)
{
        set_remove(&request_cold_make(r)->left, member);
        c->requests->left--;
        request_job_drop(r, request_job(r, member));
}

/* Drops the record of j, which has ended by e, or retains the job in the queue (retention.h). */
static void apply_drop_or_retain(struct core *c, struct request *r, struct job *j, const struct event *e)
{
        if (e->stays)
                retention_stay(c, r, j);
        else
                request_job_drop(r, j);
}

/* ---- attempts: the match that begins one, its reports, and its end */

/* Ends the attempt of a job, which goes to `next`. */
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
                set_add(&request_cold_make(r)->held, j->member);
                break;
        case JOB_COMPLETED:
        case JOB_REMOVED:
                if (next == JOB_COMPLETED) {
                        set_add(&request_cold_make(r)->completed, j->member);
                        if (j->signaled || j->exit_code != 0) {
                                set_add(&request_cold_make(r)->failed, j->member);
                                request_exit_set(r, j->member, j->signaled ? -j->exit_code : j->exit_code);
                        }
                } else {
                        set_add(&request_cold_make(r)->removed, j->member);
                }
                history_file(c, r, j->member, next, e->at_ms, j, 0);
                apply_drop_or_retain(c, r, j, e);
                request_room_made(c, r);
                charge_members_ended(c, r, 1);
                apply_finished_maybe(c, r, e->at_ms);
                break;
        default: assert(!"an attempt ends in idle, held, completed or removed");
        }
        set_deinit(&one);
}

/* Keeps the names of the resources, since the queue's table of resources outlives the attempt. */
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

static int apply_matched(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        struct queue *q = queue_get(c, agent_get(c, e->agent), e->queue);

        q->logged = true;
        SET_FOREACH (&e->members, m) {
                if (!job_state_is_idle(request_state(r, (uint32_t)m)) ||
                    set_has(&request_cold(r)->blocked, (uint32_t)m))
                        return apply_damaged(err, e, "a job that is not idle");
        }
        request_idle_remove(c, r, &e->members);
        request_reserve_over(r, &e->members);
        request_delay_over(c, r, &e->members);
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
                inflight_begin(c, j);
                c->listeners.attempt_began(c, j);
                if (charge_begin(c, j, e->account, e->draws, e->at_ms, NULL))
                        return apply_damaged(err, e, "the limits that it draws on");
                joblog_event(j, e, q);
        }
        return 0;
}

/* Returns the member's record if it has the attempt that the event is about; otherwise NULL. */
static struct job *attempt_of(struct request *r, const struct event *e, uint64_t member)
{
        struct job *j = request_job(r, (uint32_t)member);

        return j && j->queue && j->fence == e->fence ? j : NULL;
}

static int apply_filled(struct request *r, const struct event *e, struct err *err)
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

static int apply_gang(struct request *r, const struct event *e, struct err *err)
{
        SET_FOREACH (&e->members, m) {
                struct job *j = attempt_of(r, e, m);

                if (!j || (e->type == EVENT_GO && j->gang_size == 0))
                        return apply_damaged(err, e, "no such attempt");
                if (e->type == EVENT_GO) {
                        j->gang_goes = true;
                        joblog_event(j, e, j->queue);
                        continue;
                }
                j->gang_first = (uint32_t)(e->value >> 32);
                j->gang_size = (uint32_t)e->value;
        }
        return 0;
}

#define MEASURE_WEIGHT 0.1 /* of the newest value in a queue's means */

static void measure(double *mean, int64_t value_ms)
{
        double value = value_ms > 1 ? (double)value_ms : 1; /* 0 is no measurement */

        *mean = *mean > 0 ? *mean + (value - *mean) * MEASURE_WEIGHT : value;
}

static void measure_end(struct queue *q, int64_t at_ms)
{
        if (q && q->measures.ended_ms)
                measure(&q->measures.gap_ms, at_ms - q->measures.ended_ms);
        if (q)
                q->measures.ended_ms = at_ms;
}

/* since_ms: when the attempt was given to the queue, or accepted there. */
static void start_job(struct core *c, struct job *j, int64_t since_ms, int64_t started_ms, int64_t at_ms)
{
        if (j->queue)
                measure(&j->queue->measures.wait_ms, (started_ms ? started_ms : at_ms) - since_ms);
        apply_move(c, j, JOB_RUNNING, at_ms);
        j->starts++;
        j->started_ms = started_ms ? started_ms : at_ms;
        if (!j->first_started_ms)
                j->first_started_ms = j->started_ms;
        j->ended = false;
        if (!c->config.shadow)
                estimate_started(c, j);
        c->listeners.job_started(c, j);
}

static void take_result(struct core *c, struct job *j, const struct event *e)
{
        int64_t since_ms = j->entered_ms;

        /* The agent may not have reported the acceptance before the result. */
        if (j->state == JOB_MATCHED)
                apply_move(c, j, JOB_STAGING, e->at_ms);
        if (j->state == JOB_STAGING && e->outcome == CORE_EXITED)
                start_job(c, j, since_ms, e->started_ms, e->at_ms);
        if (e->outcome == CORE_EXITED) {
                losses_clear(j);
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
        if (e->outcome == CORE_EXITED && !c->config.shadow && j->ended_ms >= j->started_ms &&
            estimate_learn(c, j, j->ended_ms - j->started_ms, e->bytes_out))
                cost_class_update_slowness(c, j->queue);
        if (e->outcome == CORE_EXITED)
                measure_end(j->queue, e->at_ms);
        j->bytes_in += e->bytes_in;
        j->bytes_out += e->bytes_out;
        if (!c->replaying) {
                c->data->moved.bytes_in += e->bytes_in;
                c->data->moved.bytes_out += e->bytes_out;
        }
        j->cpu_user_ms += e->cpu_user_ms;
        j->cpu_system_ms += e->cpu_system_ms;
        j->energy_uj = e->energy_uj < INT64_MAX - j->energy_uj ? j->energy_uj + e->energy_uj : INT64_MAX;
        if (e->memory_peak_bytes > j->memory_peak_bytes)
                j->memory_peak_bytes = e->memory_peak_bytes;
        if (e->outputs.n) {
                free(j->outputs);
                j->outputs = mem_dup(e->outputs.p, e->outputs.n);
                j->outputs_n = e->outputs.n;
        }
}

/* Begin and end of a short job are reported together; the log gets both. */
static void log_untold_start(struct job *j, const struct event *e, struct queue *q)
{
        if (e->type == EVENT_EXITED && e->outcome == CORE_EXITED && !job_state_runs(j->state))
                joblog_event(j, &(struct event){.type = EVENT_STARTED, .at_ms = e->at_ms}, q);
}

/* Applies an event about attempts: each member must have a record with the attempt's fence. */
static int apply_attempt(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        SET_FOREACH (&e->members, m) {
                struct job *j = attempt_of(r, e, m);
                struct queue *q;
                int64_t since_ms;

                if (!j)
                        return apply_damaged(err, e, "no such attempt");
                q = j->queue;
                since_ms = j->entered_ms;
                log_untold_start(j, e, q);
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
                                start_job(c, j, since_ms, e->value, e->at_ms);
                        break;
                case EVENT_EXITED:
                        take_result(c, j, e);
                        q->finished++;
                        attempt_over(c, r, j, (enum job_state)e->next, e);
                        break;
                case EVENT_LOST: losses_count(c, r, j, e); /* fallthrough */
                case EVENT_REFUSED: attempt_over(c, r, j, (enum job_state)e->next, e); break;
                default: break;
                }
        }
        return 0;
}

/* Applies an attribute or a remark of the job's program. */
static int apply_program(struct request *r, const struct event *e, struct err *err)
{
        SET_FOREACH (&e->members, m) {
                struct job *j = attempt_of(r, e, m);
                struct buf all = {0};

                if (!j)
                        return apply_damaged(err, e, "no such attempt");
                j->remarks++;
                if (e->type == EVENT_REMARK) {
                        joblog_event(j, e, j->queue);
                        continue;
                }
                if (!changes_ok(e->values))
                        return apply_damaged(err, e, "the attributes");
                changes_merge(&all, str_make(j->own, j->own_n), e->values);
                free(j->own);
                j->own_n = all.n;
                j->own = buf_take(&all);
        }
        return 0;
}

/* Applies suspended, resumed or vacating: the attempt goes on in another state. */
static int apply_control(struct core *c, struct request *r, const struct event *e, struct err *err)
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

static int apply_checkpoint(struct request *r, const struct event *e, struct err *err)
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

/* ---- waiting members */

/* Members of an event, apart by whether they have a record: there may be a million without one. */
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

/* Returns a state of one of the members from which it may not go to `to`; -1: there is none. */
static int wrong_state(const struct request *r, const struct waiting *w, enum job_state to)
{
        const struct request_cold *cold = request_cold(r);
        struct set idle = {0};
        bool any_idle;

        SET_FOREACH (&w->records, m) {
                enum job_state from = request_job(r, (uint32_t)m)->state;

                if (!sm_may(&job_states, from, to) || job_state_has_attempt(from))
                        return (int)from;
        }
        if (!sm_may(&job_states, JOB_COMPLETED, to) && any_of(&w->bare, &cold->completed))
                return JOB_COMPLETED;
        if (!sm_may(&job_states, JOB_REMOVED, to) && any_of(&w->bare, &cold->removed))
                return JOB_REMOVED;
        if (!sm_may(&job_states, JOB_HELD, to) && any_of(&w->bare, &cold->held))
                return JOB_HELD;
        if (sm_may(&job_states, JOB_IDLE, to))
                return -1;
        set_copy(&idle, &w->bare);
        set_remove_all(&idle, &cold->completed);
        set_remove_all(&idle, &cold->removed);
        set_remove_all(&idle, &cold->held);
        any_idle = set_count(&idle) > 0;
        set_deinit(&idle);
        return any_idle ? JOB_IDLE : -1;
}

/* Holds members without a record, with one reason for all. A user's policies may have another reason for each
 * of millions of jobs: from a number of groups on they share one, without their reasons. */
static void hold_together(struct request *r, const struct event *e, const struct set *members)
{
        static const char rest[] =
                "its reason is not kept, since more than a thousand jobs of the request are "
                "held for different reasons";
        struct request_cold *cold = request_cold_make(r);
        bool many = cold->hold_count >= HOLD_GROUPS_MAX;
        struct hold_group *h = NULL;

        if (set_count(members) == 0)
                return;
        for (uint32_t i = 0; many && !h && i < cold->hold_count; i++)
                if (cold->holds[i].code == e->code && strcmp(cold->holds[i].reason, rest) == 0)
                        h = &cold->holds[i];
        if (!h) {
                MEM_GROW(cold->holds, cold->hold_cap, cold->hold_count + 1);
                h = &cold->holds[cold->hold_count++];
                *h = (struct hold_group){.at_ms = e->at_ms,
                                         .code = e->code,
                                         .subcode = e->subcode,
                                         .reason = many ? mem_dupz(rest) : str_dupz(e->reason)};
        }
        set_add_all(&h->members, members);
}

/* Removes or skips members: those with a record get rows of history now, the others when they are filed. */
static void ended_together(struct core *c, struct request *r, const struct event *e, const struct waiting *w,
                           enum job_state state)
{
        charge_members_ended(c, r, set_count(&e->members));
        c->requests->unfiled += set_count(&w->bare);
        set_add_all(&request_cold_make(r)->unfiled, &w->bare);
        SET_FOREACH (&w->records, m) {
                struct job *j = request_job(r, (uint32_t)m);

                history_file(c, r, j->member, state, e->at_ms, j, 0);
                apply_drop_or_retain(c, r, j, e);
        }
        request_room_made(c, r);
        apply_finished_maybe(c, r, e->at_ms);
}

static int apply_waiting(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        enum job_state to = e->type == EVENT_HELD       ? JOB_HELD
                            : e->type == EVENT_RELEASED ? JOB_IDLE
                            : e->type == EVENT_SKIPPED  ? JOB_COMPLETED
                                                        : JOB_REMOVED;
        struct request_cold *cold = request_cold_make(r);
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
                else if (to == JOB_IDLE && j->losses)
                        j->losses->lost = j->losses->failed = 0;
        }
        if (to != JOB_IDLE) {
                request_idle_remove(c, r, &e->members);
                request_reserve_over(r, &e->members);
        }
        request_delay_over(c, r, &e->members);
        set_remove_all(&cold->held, &e->members);
        request_hold_drop(r, &e->members);
        if (to == JOB_REMOVED || to == JOB_COMPLETED)
                set_remove_all(&cold->blocked, &e->members);
        if (to == JOB_IDLE)
                request_idle_add(c, r, &e->members);
        else
                set_add_all(to == JOB_HELD        ? &cold->held
                            : to == JOB_COMPLETED ? &cold->completed
                                                  : &cold->removed,
                            &e->members);
        joblog_event_of_all(r, e, &w.bare);
        if (to == JOB_HELD)
                hold_together(r, e, &w.bare);
        else if (to != JOB_IDLE)
                ended_together(c, r, e, &w, to);
        waiting_deinit(&w);
        return 0;
}

/* ---- requests and dispatch of events */

/* Refuses a request with too many classes, since classes cost memory and time in every look at the queue,
 * whoever looks. */
static int refuse_classes(struct core *c, const struct request *r, struct err *err)
{
        for (size_t i = 0; i < r->bucket_count; i++) {
                const struct bucket *b = r->buckets[i];

                if (b->job_class->idle == set_count(&b->idle) && charge_check_ways(c, b->job_class, err) != 0)
                        return CORE_INVALID;
        }
        return 0;
}

/* Accepts a draft that was loaded and split. */
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
        struct set all = {0};
        int result = request_load_stored(c, r, err);

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

/* Numbers are given when submits begin, and may be accepted in another order. */
static int apply_submitted(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        int result;

        if (r || e->request == 0)
                return apply_damaged(err, e, "the number was given before");
        if (e->value <= 0 || e->value > SUBMISSION_MEMBERS_MAX)
                return apply_damaged(err, e, "the number of jobs");
        result = c->requests->accepting ? accept_draft(c, c->requests->accepting, err)
                                        : load_submitted(c, e, err);
        if (!result && e->request > c->requests->last_id)
                c->requests->last_id = e->request;
        return result;
}

static void apply_priority(struct core *c, struct request *r, const struct event *e)
{
        struct request_cold *cold = request_cold_make(r);
        struct priority_group *g;

        for (size_t i = 0; i < cold->priority_count;) {
                g = &cold->priorities[i];
                set_remove_all(&g->members, &e->members);
                if (set_count(&g->members)) {
                        i++;
                        continue;
                }
                set_deinit(&g->members);
                *g = cold->priorities[--cold->priority_count];
        }
        MEM_GROW(cold->priorities, cold->priority_cap, cold->priority_count + 1);
        g = &cold->priorities[cold->priority_count++];
        *g = (struct priority_group){.priority = e->value};
        set_copy(&g->members, &e->members);
        if (!c->config.shadow)
                request_set_priority(c, r, &e->members, e->value);
}

/* Edits members, none of which has an attempt, so what an agent was told stays true. */
static int apply_edited(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        struct classes *k = c->classes;
        struct waiting w;
        struct err why = {""};
        int64_t kib;
        int wrong;

        waiting_init(&w, r, &e->members);
        wrong = wrong_state(r, &w, JOB_REMOVED); /* as for removal, members to be skipped must wait */
        if (wrong < 0) {
                joblog_event_of_all(r, e, &w.bare);
                SET_FOREACH (&w.records, m)
                        joblog_event(request_job(r, (uint32_t)m), e, NULL);
        }
        waiting_deinit(&w);
        if (wrong >= 0)
                return apply_damaged(err, e, job_state_name((enum job_state)wrong));
        if (edits_apply(c, r, &e->members, e->values, &kib, &why) != 0)
                return apply_damaged(err, e, why.text);
        if (c->config.shadow)
                return 0;
        charge_request_kib(r, kib);
        if (k->rekeying && split_request(k->rekeying) == r)
                split_again(k->rekeying);
        request_split_some(c, r, &e->members);
        return 0;
}

/* Number of entries of a request's log up to which EVENT_READY is logged, since a graph has one for each
 * step. */
#define READY_LOGGED 16u

static void apply_waits(struct core *c, struct request *r, const struct event *e)
{
        struct set idle = {0};

        request_idle_all(r, &idle);
        set_keep_all(&idle, &e->members);
        request_idle_remove(c, r, &idle);
        if (!request_cold_make(r)->exits)
                r->cold->exits = idmap_new();
        set_add_all(&request_cold_make(r)->blocked, &e->members);
        request_idle_add(c, r, &idle);
        set_deinit(&idle);
}

static void apply_ready(struct core *c, struct request *r, const struct event *e)
{
        struct request_cold *cold = request_cold_make(r);
        struct set idle = {0};

        set_copy(&idle, &e->members);
        set_keep_all(&idle, &cold->waiting);
        set_remove_all(&cold->waiting, &idle);
        set_remove_all(&cold->blocked, &e->members);
        if (set_count(&idle))
                request_idle_add(c, r, &idle);
        if (cold->log_count < READY_LOGGED)
                joblog_event_of_all(r, e, &e->members);
        set_deinit(&idle);
}

static void apply_filed(struct core *c, struct request *r, const struct event *e)
{
        SET_FOREACH (&e->members, m) {
                if (set_has(&request_cold(r)->left, (uint32_t)m))
                        retention_go(c, r, (uint32_t)m);
                else
                        history_file(c, r, (uint32_t)m,
                                     set_has(&request_cold(r)->completed, (uint32_t)m) ? JOB_COMPLETED
                                                                                       : JOB_REMOVED,
                                     e->at_ms, NULL, 0);
        }
        c->requests->unfiled -= set_count(&request_cold(r)->unfiled);
        set_remove_all(&request_cold_make(r)->unfiled, &e->members);
        c->requests->unfiled += set_count(&request_cold(r)->unfiled);
        apply_finished_maybe(c, r, e->at_ms);
}

static int apply_purged(struct core *c, struct request *r, const struct event *e, struct err *err)
{
        struct forgotten_request f;

        if (!request_ended(r))
                return apply_damaged(err, e, "it has not ended");
        if (e->values.n && forgotten_unpack_one(e->values, &f) != 0)
                return apply_damaged(err, e, "its uuid");
        for (size_t i = 0; i < c->requests->finished_count; i++)
                if (c->requests->finished[i] == r->id) {
                        memmove(c->requests->finished + i, c->requests->finished + i + 1,
                                (--c->requests->finished_count - i) * sizeof(*c->requests->finished));
                        break;
                }
        f.id = r->id;
        request_free(c, r);
        if (e->values.n)
                forgotten_add(c->requests->forgotten, &f, e->at_ms);
        return 0;
}

static int apply_node(struct core *c, const struct event *e, struct err *err)
{
        struct core_agent *a = agent_get(c, e->agent);
        struct node_instance i;

        if (e->type == EVENT_NODE_INSTANCE) {
                if (node_instance_unpack(e->values, &i) != 0)
                        return apply_damaged(err, e, "the instance of the node");
                free(a->node.instance);
                a->node.instance = str_dupz(e->values);
                a->node.instance_n = e->values.n;
                node_spending_add(&c->spending, i.cost_micro, e->at_ms);
                return 0;
        }
        if (e->type == EVENT_NODE_FACTS) {
                free(a->node.facts);
                a->node.facts = str_dupz(e->values);
                return 0;
        }
        if (e->next >= NODE_STATES || !sm_may(&node_states, node_state_of(&a->node), e->next))
                return apply_damaged(err, e, "the state of the node");
        agent_node_move(a, e);
        return 0;
}

static void on_movement(void *arg, const struct bank_entry *entry)
{
        const struct core *c = arg;

        if (c->world.movement && !c->replaying)
                c->world.movement(c->world.arg, entry);
}

/* Logs orders to the bank for an attempt, except extensions, which would fill a long job's log. */
static void log_bank(struct core *c, const struct event *e, const struct bank_order *o)
{
        const struct request *r = request_find(c, o->request);

        if (o->op != BANK_LIEN && o->op != BANK_RELEASE && o->op != BANK_CHARGE)
                return;
        SET_FOREACH (&o->members, m) {
                struct job *j = r && m < r->count ? request_job(r, (uint32_t)m) : NULL;
                const struct bank_lien *l = bank_lien_of(c->bank, o->request, (uint32_t)m);
                BUF_CLEANUP struct buf text = {0};

                if (!j || j->fence != o->fence)
                        continue;
                buf_addz(&text, bank_op_name(o->op));
                if (o->op != BANK_RELEASE)
                        buf_printf(&text, " %lld", (long long)o->amount);
                if (o->account.n)
                        buf_printf(&text, " of " STR_FMT, STR_ARG(o->account));
                else if (l)
                        buf_printf(&text, " of %s", l->account->name);
                if (o->op == BANK_LIEN && o->quote)
                        buf_printf(&text, " by quote %llu", (unsigned long long)o->quote);
                else if (o->op == BANK_LIEN && o->why.n)
                        buf_printf(&text, ": " STR_FMT, STR_ARG(o->why));
                joblog_event(j,
                             &(struct event){.type = e->type, .at_ms = e->at_ms, .reason = buf_view(&text)},
                             j->queue);
        }
}

static int apply_bank(struct core *c, const struct event *e, struct err *err)
{
        uint64_t before = bank_generation(c->bank);
        struct err why = {""};
        struct bank_order o;
        int r = bank_order_unpack(&o, e->values, &why);

        if (!r) {
                log_bank(c, e, &o);
                r = bank_apply(c->bank, &o, e->at_ms, on_movement, c, &c->bank_made, &why);
                bank_order_deinit(&o);
        }
        if (r)
                return apply_damaged(err, e, why.text);
        if (bank_generation(c->bank) != before && !c->config.shadow)
                charge_money_changed(c);
        return 0;
}

static int event_apply_one(struct core *c, const struct event *e, struct err *err)
{
        struct request *r = request_find(c, e->request);

        if (e->type == EVENT_NODE || e->type == EVENT_NODE_FACTS || e->type == EVENT_NODE_INSTANCE)
                return apply_node(c, e, err);
        if (e->type == EVENT_BANK)
                return apply_bank(c, e, err);
        if (e->type == EVENT_ADVANCE)
                return advance_apply(c, e->values, e->at_ms, NULL) ? apply_damaged(err, e, "its order") : 0;
        if (e->type == EVENT_SPACE)
                return space_apply(c, e->values, NULL) ? apply_damaged(err, e, "its order") : 0;
        if (e->type == EVENT_SUBMITTED)
                return apply_submitted(c, r, e, err);
        if (!r)
                return apply_damaged(err, e, "there is no such request");
        if (set_count(&e->members) && set_next(&e->members, r->count) != SET_END)
                return apply_damaged(err, e, "a job that the request does not have");
        switch (e->type) {
        case EVENT_MATCHED: return apply_matched(c, r, e, err);
        case EVENT_FILLED: return apply_filled(r, e, err);
        case EVENT_GANG:
        case EVENT_GO: return apply_gang(r, e, err);
        case EVENT_ACCEPTED:
        case EVENT_REFUSED:
        case EVENT_STARTED:
        case EVENT_EXITED:
        case EVENT_LOST: return apply_attempt(c, r, e, err);
        case EVENT_HELD:
        case EVENT_RELEASED:
        case EVENT_SKIPPED:
        case EVENT_REMOVED: return apply_waiting(c, r, e, err);
        case EVENT_VACATING:
        case EVENT_SUSPENDED:
        case EVENT_RESUMED: return apply_control(c, r, e, err);
        case EVENT_PRIORITY: apply_priority(c, r, e); return 0;
        case EVENT_EDITED: return apply_edited(c, r, e, err);
        case EVENT_FILED: apply_filed(c, r, e); return 0;
        case EVENT_WAITS: apply_waits(c, r, e); return 0;
        case EVENT_READY: apply_ready(c, r, e); return 0;
        case EVENT_CHECKPOINTED: return apply_checkpoint(r, e, err);
        case EVENT_ATTRIBUTES:
        case EVENT_REMARK: return apply_program(r, e, err);
        case EVENT_LEASE_ENDED: request_cold_make(r)->delegation.lease_over = true; return 0;
        case EVENT_RESULTS_TAKEN: set_add_all(&request_cold_make(r)->delegation.taken, &e->members); return 0;
        case EVENT_PURGED: return apply_purged(c, r, e, err);
        case EVENT_SUBMITTED:
        case EVENT_NODE:
        case EVENT_NODE_FACTS:
        case EVENT_BANK:
        case EVENT_ADVANCE:
        case EVENT_SPACE:
        case EVENT_NODE_INSTANCE:
        case EVENT_TYPES: break;
        }
        return apply_damaged(err, e, "its type");
}

int core_emit(struct core *c, struct event *e, struct err *err)
{
        struct err why = {{0}};
        int r;

        if (e->type != EVENT_SUBMITTED) /* the submit's own log entry has the time */
                e->at_ms = c->now_ms;
        c->listeners.event_before(c, e);
        r = event_apply_one(c, e, &why);
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
        c->listeners.event_after(c, e);
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
        r = event_apply_one(c, &e, err);
        c->replaying = false;
        if (r == 0 && c->world.replayed)
                c->world.replayed(c->world.arg, &e);
        event_deinit(&e);
        return r;
}
