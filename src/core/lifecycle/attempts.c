/* Handles agents' reports on attempts, from acceptance to result. */
#include "core/lifecycle/attempts.h"

#include "base/mem.h"
#include "base/pack.h"
#include "core/accounts/share.h"
#include "core/data/data_state.h"
#include "core/events/apply.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/index/index.h"
#include "core/lifecycle/leases.h"
#include "core/lifecycle/losses.h"
#include "core/lifecycle/lots.h"
#include "core/lifecycle/nodes.h"
#include "core/lifecycle/policy.h"
#include "core/lifecycle/retention.h"
#include "core/model/core_parts.h"
#include "core/model/pending_match.h"

#define CLOCK_OFF_MS 86400000 /* largest accepted error of an agent's clock */

/* Returns the attempt if it is this agent's and the job's latest; otherwise NULL. All reports of agents on
 * attempts are checked here. */
static struct job *attempt_of(const struct request *r, const char *agent, uint32_t member, uint32_t fence)
{
        struct job *j = r ? request_job(r, member) : NULL;

        return j && j->queue && j->fence == fence && strcmp(j->queue->agent->name, agent) == 0 ? j : NULL;
}

bool core_has_attempt(struct core *c, const char *agent, uint64_t request, uint32_t member, uint32_t fence)
{
        return attempt_of(request_find(c, request), agent, member, fence) != NULL;
}

bool core_has_part(struct core *c, const char *agent, uint64_t request, uint32_t part)
{
        const struct core_agent *a = agent_find(c, agent);
        const struct request *r = request_find(c, request);
        uint32_t of;

        if (!a || !r || (part != CORE_PART_ANY && !request_part_at(r, part)))
                return false;
        for (const struct queue *q = a->queues; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        if (j->request == r &&
                            (part == CORE_PART_ANY || (request_part(r, j->member, &of) && of == part)))
                                return true;
        return false;
}

#define LOOKS_STEP 16u /* attempts that take as long to look at as a step of an evaluation */

/* Adds the agent's attempts among the members of `a` under that fence. A few bytes may name millions of
 * members; the agent's attempts are looked at then. */
static void own_attempts(struct core *c, const char *agent, const struct core_attempts *a, struct set *ret)
{
        const struct core_agent *by = agent_find(c, agent);
        const struct request *r = request_find(c, a->request);
        uint64_t count = 0, named = set_count(a->members);

        if (!by || !r)
                return;
        for (const struct queue *q = by->queues; q; q = q->next)
                count += q->attempt_count;
        c->late_steps += (count < named ? count : named) / LOOKS_STEP;
        if (count >= named) {
                SET_FOREACH (a->members, m) {
                        if (attempt_of(r, agent, (uint32_t)m, a->fence))
                                set_add(ret, (uint32_t)m);
                }
                return;
        }
        for (const struct queue *q = by->queues; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        if (j->request == r && j->fence == a->fence && set_has(a->members, j->member))
                                set_add(ret, j->member);
}

/* Divides the members of `a` into attempts that this agent has under that fence, and others (*ret_stale, may
 * be NULL). */
static void sift(struct core *c, const char *agent, const struct core_attempts *a, struct set *ret_mine,
                 struct set *ret_stale)
{
        own_attempts(c, agent, a, ret_mine);
        if (!ret_stale)
                return;
        set_copy(ret_stale, a->members);
        set_remove_all(ret_stale, ret_mine);
}

/* Returns a copy of the members, which the caller deinits. */
static struct set copy_of(const struct set *members)
{
        struct set copy = {0};

        set_copy(&copy, members);
        return copy;
}

static void emit_attempts(struct core *c, const struct core_attempts *a, struct event *e)
{
        if (set_count(&e->members)) {
                e->request = a->request;
                e->fence = a->fence;
                core_emit(c, e, NULL);
        }
        event_deinit(e);
}

/* Returns a copy of the resources that the attempt takes according to its record. */
static struct need need_of_attempt(const struct job *j)
{
        struct need need = {
                .cpus = j->cpus, .memory_mib = (int64_t)j->memory_mib, .disk_kib = (int64_t)j->disk_kib};

        if (j->more)
                need.more = *j->more;
        return need;
}

void attempt_vacate(struct core *c, const struct job *j, const char *why)
{
        struct event e = {
                .type = EVENT_VACATING, .request = j->request->id, .next = JOB_IDLE, .reason = str_of(why)};

        set_add(&e.members, j->member);
        core_emit(c, &e, NULL);
        c->world.control(c->world.arg, j->queue->agent->name, CORE_VACATE, j->request->id, j->fence,
                         &e.members);
        event_deinit(&e);
}

void attempt_lose(struct core *c, struct job *j, struct str why, enum loss_by by)
{
        struct queue *q = j->queue;
        struct need need = need_of_attempt(j);
        bool accepted = j->accepted;
        struct loss_decision d;
        struct event e = {.type = EVENT_LOST, .request = j->request->id, .fence = j->fence};

        losses_decide(c, j, why, by, &d);
        e.next = d.next;
        e.code = d.code;
        e.subcode = d.subcode;
        e.reason = str_of(d.reason);
        set_add(&e.members, j->member);
        core_emit(c, &e, NULL);
        event_deinit(&e);
        nodes_lost(c, q->agent);
        reserve_attempt_ended(c, q);
        /* Offers made since were accounted as if the attempt was still to take its part of them. */
        if (!accepted && q->ad) {
                need_return(c, &need, q);
                index_queue_changed(c, q);
                if (q->offers)
                        queue_look_again(c, q);
        }
}

void core_inventory(struct core *c, const char *agent, const struct core_attempts *has, size_t count,
                    void (*stale)(void *arg, uint64_t request, uint32_t fence, const struct set *members),
                    void *arg)
{
        struct core_agent *a = agent_get(c, str_of(agent));

        core_renew(c, agent);
        for (struct queue *q = a->queues; q; q = q->next)
                for (struct job *j = q->attempts; j; j = j->next)
                        j->unknown = true;
        for (size_t i = 0; i < count; i++) {
                struct set mine = {0}, other = {0};

                sift(c, agent, &has[i], &mine, &other);
                SET_FOREACH (&mine, m)
                        request_job(request_find(c, has[i].request), (uint32_t)m)->unknown = false;
                if (request_find(c, has[i].request) && request_find(c, has[i].request)->has_gangs &&
                    set_count(&mine))
                        core_accepted(c, agent, &(struct core_attempts){has[i].request, has[i].fence, &mine});
                gang_inventory(c, agent, &has[i], &mine);
                if (set_count(&other))
                        stale(arg, has[i].request, has[i].fence, &other);
                set_deinit(&mine);
                set_deinit(&other);
        }
        c->leases->due_ms = 0; /* leases_end loses the attempts marked unknown */
        leases_end(c);
        /* Attempts that the agent has need not be assigned again, but those being stopped must be stopped
         * again: the agent may have missed the order. */
        for (struct queue *q = a->queues; q; q = q->next)
                for (struct job *j = q->attempts; j; j = j->next)
                        if (j->state == JOB_VACATING && !j->unknown) {
                                struct set one = {0};

                                set_add(&one, j->member);
                                c->world.control(c->world.arg, a->name, core_control_of_goal(j->goal),
                                                 j->request->id, j->fence, &one);
                                set_deinit(&one);
                        }
}

void core_accepted(struct core *c, const char *agent, const struct core_attempts *a)
{
        struct event e = {.type = EVENT_ACCEPTED};
        struct request *r = request_find(c, a->request);
        struct set mine = {0};

        sift(c, agent, a, &mine, NULL);
        e.members = copy_of(&mine);
        SET_FOREACH (&mine, m) {
                if (request_job(r, (uint32_t)m)->accepted)
                        set_remove(&e.members, (uint32_t)m);
        }
        set_deinit(&mine);
        emit_attempts(c, a, &e);
}

/* Returns the resources of a refused attempt to the offer, which other jobs may use. */
static void offer_again(struct core *c, struct queue *q, const struct need *need, const struct job_class *k)
{
        if (!q->ad)
                return;
        need_return(c, need, q);
        index_queue_changed(c, q);
        for (unsigned i = 0; k && i < q->refused_count; i++)
                if (q->refused[i] == k->index.serial)
                        return;
        if (k && q->refused_count < REFUSED_MAX) {
                q->refused[q->refused_count++] = k->index.serial;
                if (q->offers && q->jobs_left > 0)
                        queue_look_again(c, q);
        } else {
                q->offers = false;
                index_queue_changed(c, q);
        }
}

void core_refused(struct core *c, const char *agent, const struct core_attempts *a, struct str reason,
                  int hold_code)
{
        struct set mine = {0};
        struct request *r = request_find(c, a->request);

        sift(c, agent, a, &mine, NULL);
        SET_FOREACH (&mine, m) {
                struct job *j = request_job(r, (uint32_t)m);
                struct event e = {.type = EVENT_REFUSED, .code = hold_code, .reason = reason};
                const struct bucket *b = request_bucket(c, r, (uint32_t)m);
                struct need need = need_of_attempt(j);
                struct queue *q = j->accepted ? NULL : j->queue;
                char *why = NULL;

                if (j->accepted)
                        links_gave_back(c, j);
                e.next = hold_code ? JOB_HELD : JOB_IDLE;
                if (j->state == JOB_VACATING) {
                        e.next = j->goal;
                        e.code = j->hold_code;
                        why = mem_dupz(j->hold_reason);
                        e.reason = str_of(why);
                }
                set_add(&e.members, (uint32_t)m);
                emit_attempts(c, a, &e);
                free(why);
                if (!hold_code && b && b->job_class)
                        reserve_refused(b->job_class);
                if (q)
                        offer_again(c, q, &need, b ? b->job_class : NULL);
        }
        set_deinit(&mine);
}

/* Bounds a time reported by an agent, whose clock may be wrong, to between the submit and CLOCK_OFF_MS from
 * now; 0 stays. */
static int64_t time_said(const struct core *c, const struct request *r, int64_t at_ms)
{
        int64_t first = r->submitted_ms - CLOCK_OFF_MS, last = c->now_ms + CLOCK_OFF_MS;

        if (at_ms == 0)
                return 0;
        return at_ms < first ? first : at_ms > last ? last : at_ms;
}

void core_started(struct core *c, const char *agent, const struct core_attempts *a, int64_t at_ms)
{
        struct request *r = request_find(c, a->request);
        struct event e = {.type = EVENT_STARTED, .value = r ? time_said(c, r, at_ms) : 0};
        struct set mine = {0};

        sift(c, agent, a, &mine, NULL);
        e.members = copy_of(&mine);
        SET_FOREACH (&mine, m) {
                const struct job *j = request_job(r, (uint32_t)m);

                if (j->state != JOB_MATCHED && j->state != JOB_STAGING)
                        set_remove(&e.members, (uint32_t)m);
        }
        set_deinit(&mine);
        emit_attempts(c, a, &e);
}

bool core_checkpoint(struct core *c, const char *agent, const struct core_result *res)
{
        struct event e = {.type = EVENT_CHECKPOINTED,
                          .request = res->request,
                          .fence = res->fence,
                          .cpu_user_ms = res->cpu_user_ms,
                          .cpu_system_ms = res->cpu_system_ms,
                          .values = res->outputs};

        if (!attempt_of(request_find(c, res->request), agent, res->member, res->fence))
                return false;
        set_add(&e.members, res->member);
        core_emit(c, &e, NULL);
        event_deinit(&e);
        return true;
}

static bool lists(struct str files, const unsigned char sha256[32])
{
        struct unpack u = unpack_from(files);

        for (uint64_t n = unpack_u64(&u); n > 0 && !u.bad; n--) {
                unpack_str(&u);
                if (u.bad || u.end - u.p < 32)
                        return false;
                if (memcmp(u.p, sha256, 32) == 0)
                        return true;
                u.p += 32;
                unpack_u64(&u);
                unpack_u64(&u);
        }
        return false;
}

bool core_checkpoint_has(struct core *c, const char *agent, uint64_t request, const unsigned char sha256[32])
{
        struct core_agent *a = agent_find(c, agent);

        for (struct queue *q = a ? a->queues : NULL; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        if (j->checkpoint_n && j->request->id == request &&
                            lists(str_make(j->checkpoint, j->checkpoint_n), sha256))
                                return true;
        return false;
}

bool core_result(struct core *c, const char *agent, const struct core_result *said)
{
        struct request *r = request_find(c, said->request);
        struct job *j = attempt_of(r, agent, said->member, said->fence);
        struct core_result bounded = *said, *res = &bounded;
        uint64_t steps = core_steps(c);
        struct account *account;
        struct queue *q;
        struct exit_decision d;
        struct lots_end lots;
        struct event e = {
                .type = EVENT_EXITED,
                .request = res->request,
                .fence = res->fence,
                .outcome = res->outcome,
                .signaled = res->signaled,
                .exit_code = res->exit_code,
                .started_ms = res->started_ms,
                .ended_ms = res->ended_ms,
                .cpu_user_ms = res->cpu_user_ms,
                .cpu_system_ms = res->cpu_system_ms,
                .memory_peak_bytes = res->memory_peak_bytes,
                .outputs = res->outputs,
                .bytes_in = res->bytes_in,
                .bytes_out = res->bytes_out,
                .energy_uj = res->energy_uj,
        };

        if (!j)
                return false;
        e.started_ms = res->started_ms = time_said(c, r, res->started_ms);
        e.ended_ms = res->ended_ms = time_said(c, r, res->ended_ms);
        if (res->outcome == CORE_OUTCOME_LOST) {
                attempt_lose(c, j, res->reason.n ? res->reason : STR("the agent lost the attempt"),
                             res->started_ms ? LOSS_BY_AGENT_RAN : LOSS_BY_AGENT);
                return true;
        }
        if (res->checkpoint) {
                if (res->outputs.n)
                        core_checkpoint(c, agent, res);
                e.outputs = STR_NONE;
        }
        account = j->account;
        q = j->queue;
        policy_exit(c, r, j, res, &d);
        if (j->state == JOB_VACATING && j->goal == JOB_COMPLETED && (res->signaled || res->exit_code))
                e.outcome = CORE_KILLED; /* the exit status would say nothing about the program */
        e.next = d.next;
        e.code = d.code;
        e.subcode = d.subcode;
        e.reason = str_of(d.reason);
        set_add(&e.members, res->member);
        lots_end_find(c, j, res, &lots);
        c->retention->later = !account_may_evaluate(account, c->steady_ms);
        core_emit(c, &e, NULL);
        c->retention->later = false;
        lots_end_emit(c, &lots);
        event_deinit(&e);
        reserve_attempt_ended(c, q);
        /* Policies and the row of history: jobs of an owner whose ends take long start less often. */
        account_evaluated(account, c->steady_ms, core_steps(c) - steps);
        return true;
}
