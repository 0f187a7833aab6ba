/* The life of an attempt; the diagram is in model/attempt.h. Only attempt_move changes the state and updates
 * the lists. */
#include "agent/attempt/life.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "agent/attempt/checkpoint.h"
#include "agent/attempt/chirp.h"
#include "agent/attempt/delivery.h"
#include "agent/attempt/journal.h"
#include "agent/attempt/limits.h"
#include "agent/attempt/live_output.h"
#include "agent/attempt/output_tail.h"
#include "agent/attempt/placement_report.h"
#include "agent/attempt/sandboxes.h"
#include "agent/attempt/staging.h"
#include "agent/attempt/streams.h"
#include "agent/container/container_step.h"
#include "agent/container/containers.h"
#include "agent/credential/credentials.h"
#include "agent/environment/environments.h"
#include "agent/model/expand.h"
#include "agent/model/walltime.h"
#include "agent/outbox/outbox.h"
#include "agent/queue/offers.h"
#include "agent/step/activate.h"
#include "agent/step/submit.h"
#include "agent/transfer/inputs.h"
#include "agent/transfer/output_transfers.h"
#include "agent/transfer/spool.h"
#include "agent/transfer/stage.h"
#include "agent/transfer/stage_work.h"
#include "base/sm.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "move/placement.h"

#define LOOK_MAX 64 /* waiting attempts looked at in one turn, when the first ones do not fit */
#define SLICE_MS 20 /* time in a turn for starting attempts */

static const char *const state_names[] = {"waiting", "staging", "running", "delivering", "done"};
static const uint32_t moves[] = {
        [ATTEMPT_WAITING] = SM_TO(ATTEMPT_STAGING) | SM_TO(ATTEMPT_RUNNING) | SM_TO(ATTEMPT_DONE),
        [ATTEMPT_STAGING] = SM_TO(ATTEMPT_RUNNING) | SM_TO(ATTEMPT_DONE),
        [ATTEMPT_RUNNING] = SM_TO(ATTEMPT_DELIVERING) | SM_TO(ATTEMPT_DONE),
        [ATTEMPT_DELIVERING] = SM_TO(ATTEMPT_DONE),
        [ATTEMPT_DONE] = 0,
};
static const struct sm machine = {"attempt", state_names, moves, ATTEMPT_STATES};

/* ---- lists */

static void list_add(struct attempt *at)
{
        struct queue *q = at->q;
        struct attempt **where = at->state == ATTEMPT_WAITING ? q->waiting_last : &q->lists[at->state];

        at->link = where;
        at->next = *where;
        if (at->next)
                at->next->link = &at->next;
        *where = at;
        if (at->state == ATTEMPT_WAITING)
                q->waiting_last = &at->next;
        q->counts[at->state]++;
}

static void list_take(struct attempt *at)
{
        struct queue *q = at->q;

        *at->link = at->next;
        if (at->next)
                at->next->link = at->link;
        if (at->state == ATTEMPT_WAITING && q->waiting_last == &at->next)
                q->waiting_last = at->link;
        q->counts[at->state]--;
        q->kept -= at->keeps_room;
        at->keeps_room = false;
}

/* ---- resources */

/* Takes devices for an attempt that fits (offers_fits), or takes those that it had before a restart. */
static void take_devices(struct attempt *at)
{
        struct buf b = {0};

        if (at->devices || at->t->m->resource_count == 0)
                return;
        for (size_t i = 0; i < at->t->m->resource_count; i++)
                devices_take(at->a->devices, &at->q->devices, at->t->m->resources[i].name,
                             at->t->m->resources[i].count, &b);
        at->devices = buf_take(&b);
        journal_devices(at);
}

static void release_devices(struct attempt *at)
{
        if (!at->devices)
                return;
        devices_mark(at->a->devices, str_of(at->devices), false);
        free(at->devices);
        at->devices = NULL;
}

static void commit(struct attempt *at, bool on)
{
        if (on)
                take_devices(at);
        else
                release_devices(at);
        if (at->counted == on)
                return;
        at->counted = on;
        at->q->committed_cpus_milli += on ? at->cpus_milli : -at->cpus_milli;
        at->q->committed_memory_bytes += on ? at->memory_bytes : -at->memory_bytes;
        at->q->committed_disk_bytes += on ? at->t->m->disk_bytes : -at->t->m->disk_bytes;
}

void attempt_keep_room(struct attempt *at)
{
        assert(at->state == ATTEMPT_WAITING);
        if (at->keeps_room)
                return;
        at->keeps_room = true;
        at->q->kept++;
        commit(at, true);
}

void attempt_stop_work(struct attempt *at)
{
        stage_cancel(at);
        inputs_forget(at);
        environments_forget(at);
        containers_forget(at);
        output_transfers_forget(at);
        spool_forget(at);
        delivery_forget(at);
}

struct attempt *attempt_new(struct queue *q, struct held_template *t, uint64_t request, uint32_t member,
                            uint32_t fence)
{
        struct attempt *at = mem_new(struct attempt);

        at->magic = ATTEMPT_MAGIC;
        at->a = q->a;
        at->q = q;
        at->t = held_template_ref(t);
        at->request = request;
        at->member = member;
        at->fence = fence;
        at->entered_ms = clock_wall_ms();
        char key[17];
        agent_key(key, request, member, fence);
        void *before = map_put(q->a->attempts, str_make(key, 16), at);
        assert(!before);
        list_add(at);
        agent_turn_later(q->a);
        return at;
}

void attempt_free(struct attempt *at)
{
        assert(at->magic == ATTEMPT_MAGIC);
        char key[17];
        agent_key(key, at->request, at->member, at->fence);
        map_take(at->a->attempts, str_make(key, 16));
        list_take(at);
        commit(at, false);
        streams_forget(at);
        chirp_close(at);
        live_output_end(at);
        attempt_stop_work(at);
        environments_release(at);
        credentials_release(at);
        container_step_cancel(at);
        checkpoint_free(at);
        limits_release(at);
        free(at->devices);
        at->a->held_bytes -= at->bytes;
        held_template_unref(at->t);
        for (size_t i = 0; i < at->value_count; i++)
                free(at->values[i]);
        free(at->values);
        for (size_t i = 0; i < 2 * at->filled_count; i++)
                free(at->filled[i]);
        free(at->filled);
        free(at->iwd);
        free(at->gang_machines);
        for (size_t i = 0; i < at->input_count; i++)
                free(at->inputs[i].name);
        free(at->inputs);
        output_tail_drop(at);
        job_result_deinit(&at->result);
        at->magic = 0;
        free(at);
}

void attempt_move(struct attempt *at, enum attempt_state to)
{
        sm_check(&machine, at->state, to);
        log_debug("msg=\"an attempt goes on\" %s from=%s to=%s", expand_log(at, (char[LOG_NAME]){0}),
                  sm_state(&machine, at->state), sm_state(&machine, to));
        list_take(at);
        at->state = to;
        at->entered_ms = clock_wall_ms();
        list_add(at);
        commit(at, to == ATTEMPT_STAGING || to == ATTEMPT_RUNNING);
        agent_turn_later(at->a);
}

/* ---- ending */

static void forget_tasks(struct attempt *at)
{
        for (unsigned s = 0; s <= at->step; s++)
                for (unsigned round = 0; round <= at->checkpoint.round;
                     round++) /* earlier ones were forgotten, of this step */
                        if (s < at->step || round == at->checkpoint.round)
                                runner_forget(at->q->backend->runner,
                                              (struct run_id){at->request, at->member, at->fence,
                                                              s + STEPS_MAX * round, 0});
}

void attempt_forget(struct attempt *at)
{
        struct agent *a = at->a;

        if (at->state == ATTEMPT_RUNNING || at->state == ATTEMPT_DELIVERING)
                forget_tasks(at);
        journal_gone(a, at->request, at->member, at->fence);
        sandbox_remove(at);
        attempt_free(at);
        agent_turn_later(a);
}

void attempt_finish(struct attempt *at)
{
        if (at->kill.state == KILL_ABANDONED) {
                attempt_forget(at);
                return;
        }
        streams_end(at);
        chirp_close(at);
        live_output_end(at);
        checkpoint_carry_stop(at);
        at->result.is_checkpoint |= at->checkpoint.state == CHECKPOINT_UNACKED; /* sent again */
        if (!at->result.ended_ms)
                at->result.ended_ms = (uint64_t)clock_wall_ms();
        bool ran = at->state == ATTEMPT_RUNNING || at->state == ATTEMPT_DELIVERING;
        limits_release(at);
        environments_release(at);
        at->leaves_sandbox = at->a->sandboxes_wait = true;
        attempt_move(at, ATTEMPT_DONE);
        at->q->ended[at->result.outcome]++;
        journal_result(at);
        if (ran) {
                forget_tasks(at); /* leaves after the journal is written */
                pull_use_ended(&at->q->use, at->result.cpu_user_ms + at->result.cpu_system_ms,
                               at->result.ended_ms > at->result.started_ms
                                       ? at->result.ended_ms - at->result.started_ms
                                       : 0,
                               at->result.memory_peak_bytes);
        }
}

/* ---- going on */

static void begin_attempt(struct attempt *at)
{
        attempt_move(at, ATTEMPT_STAGING);
        staging_begin(at);
}

static void schedule_queue(struct queue *q)
{
        unsigned looked = 0;
        int64_t end = clock_boot_ms() + SLICE_MS;

        if (!q->backend->ready || q->backend->unreachable)
                return;
        for (struct attempt *at = q->lists[ATTEMPT_WAITING], *next; at && looked < LOOK_MAX; at = next) {
                next = at->next;
                if (at->wait_for_go || at->adopted || at->suspended)
                        continue;
                if (!offers_fits(at)) {
                        looked++;
                        continue;
                }
                begin_attempt(at);
                if (clock_boot_ms() >= end) { /* many, and a slow disk */
                        agent_turn_later(q->a);
                        return;
                }
        }
}

void attempt_schedule(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++)
                schedule_queue(a->queues[i]);
}

/* Returns the time by which the task must begin, so that a runner that falls silent does not begin it when
 * the attempt has been given up. */
static int64_t begin_by(const struct attempt *at)
{
        uint64_t wait_ms = at->a->config.shepherd_silence_ms;

        return wait_ms && at->q->backend->runner->kind->begun ? clock_boot_ms() + (int64_t)wait_ms : 0;
}

void attempt_submit_step(struct attempt *at)
{
        struct err err = {""};

        at->container.over = at->container.out_of_memory = at->task_runs = false;
        at->begin_by_ms = begin_by(at);
        at->begun = false;
        chirp_open(at);
        live_output_begin(at);
        if (step_submit(at, &err) == 0) {
                at->stepping = true;
                return;
        }
        attempt_set_outcome(at, OUTCOME_NOT_STARTED, HOLD_NOT_STARTED, "%s", err.text);
        attempt_finish(at);
}

void attempt_give_back(struct attempt *at, const char *reason)
{
        if (at->state > ATTEMPT_STAGING)
                return;
        at->q->staging_failures += at->state == ATTEMPT_STAGING;
        if (at->kill.state != KILL_ABANDONED)
                outbox_refuse(at->a, at->q->config->name, at, false, reason);
        attempt_forget(at);
}

void attempt_next_round(struct attempt *at)
{
        runner_forget(at->q->backend->runner, attempt_task(at));
        at->checkpoint.round++;
        agent_turn_later(at->a);
        attempt_submit_step(at);
}

static void deliver_outputs(struct attempt *at)
{
        checkpoint_outputs_drop(at);
        streams_end(at);
        chirp_close(at);
        live_output_end(at);
        attempt_move(at, ATTEMPT_DELIVERING);
        delivery_begin(at);
}

/* Returns whether anything is delivered. Of a job that was killed this is what it has printed, into the
 * submitter's folder: where nothing is transferred it is expected there, as a shell would have written it. */
static bool leaves_outputs(const struct attempt *at)
{
        enum outcome o = at->result.outcome;

        return o == OUTCOME_EXITED || o == OUTCOME_LIMIT_EXCEEDED ||
               (o == OUTCOME_KILLED && at->t->m->transfer == TRANSFER_NO);
}

/* Called when no process is left: counts the usage and delivers the outputs. */
static void deliver(struct attempt *at)
{
        at->stepping = false;
        limits_usage(at);
        at->all_ended =
                at->cgroup && (cgroups_limits(at->a->cgroups) & CGROUP_KILL) && cgroup_empty(at->cgroup);
        limits_release(at);
        if (at->kill.state == KILL_ABANDONED || !leaves_outputs(at)) {
                attempt_finish(at);
                return;
        }
        if (!output_tail_wait(at) && !live_output_wait(at))
                deliver_outputs(at);
}

static void on_printed(struct attempt *at)
{
        if (at->state == ATTEMPT_RUNNING && at->kill.state == KILL_ABANDONED)
                attempt_finish(at);
        else if (at->state == ATTEMPT_RUNNING)
                deliver_outputs(at);
}

void attempt_lost(struct attempt *at, const char *why)
{
        if (at->state == ATTEMPT_RUNNING && at->stepping && !at->result.started_ms)
                at->result.started_ms = clock_wall_ms(); /* the runner had the task and may have begun it */
        at->stepping = false;
        container_step_lost(at);
        if (at->cgroup)
                cgroup_kill(at->cgroup);
        if (!at->result.set)
                log_warn("msg=\"an attempt is lost\" %s why=\"%s\"", expand_log(at, (char[LOG_NAME]){0}),
                         why);
        attempt_set_outcome(at, OUTCOME_LOST, 0, "%s", why);
        attempt_finish(at);
}

/* Called when the step's task is over; its result is in results[step]. */
void attempt_step_over(struct attempt *at, enum run_why why)
{
        if (at->state != ATTEMPT_RUNNING || container_step_ended(at, why))
                return;
        checkpoint_carry_stop(at);
        const struct step_result *r = &at->result.steps[at->step];
        const struct job_step *step = &at->t->m->steps[at->step];
        bool failed = r->signaled || r->exit_code != 0;
        BUF_CLEANUP struct buf words = {0};
        at->stepping = false;
        if (why == RUN_ITSELF && config_queue_places(at->q->config) && !r->signaled &&
            r->exit_code == PLACEMENT_EXIT_DENIED)
                attempt_set_outcome(at, OUTCOME_STAGING_FAILED, HOLD_CREDENTIAL,
                                    "a store refuses what a credential of the job shows; replace it with "
                                    "`drover credential add`, and the job is released");
        if (config_queue_places(at->q->config))
                placement_report_read(at);
        if (why == RUN_ITSELF && activate_failed(at, &words))
                attempt_set_outcome(at, OUTCOME_NOT_STARTED, HOLD_NOT_STARTED, "%s", buf_z(&words));
        if (why == RUN_WALLTIME && walltime_of(at))
                attempt_set_outcome(at, OUTCOME_LIMIT_EXCEEDED, HOLD_WALLTIME,
                                    "it ran longer than its walltime of %llu s",
                                    (unsigned long long)(walltime_of(at) / 1000));
        else if (why == RUN_WALLTIME)
                attempt_set_outcome(at, OUTCOME_LIMIT_EXCEEDED, HOLD_WALLTIME,
                                    "it ran longer than %s lets a job that says no time",
                                    at->q->config->runner);
        else if (why == RUN_ITSELF && !failed && limits_killed(at))
                attempt_set_outcome(at, OUTCOME_LIMIT_EXCEEDED, HOLD_MEMORY,
                                    "the kernel killed processes of the job, which used more than its memory "
                                    "of %llu MiB, "
                                    "though its program ended with exit code 0",
                                    (unsigned long long)(at->memory_bytes >> 20));
        else if (why == RUN_MEMORY || (failed && limits_oom(at)))
                attempt_set_outcome(at, OUTCOME_LIMIT_EXCEEDED, HOLD_MEMORY,
                                    "it used more than its memory of %llu MiB",
                                    (unsigned long long)(at->memory_bytes >> 20));
        else if (why == RUN_LEASE_ENDED)
                attempt_set_outcome(at, OUTCOME_LOST, 0, "the lease ended while the agent was away");
        else if (why == RUN_KILLED)
                attempt_set_outcome(at, OUTCOME_LOST, 0, "it was ended by an agent that is gone");
        if (why == RUN_ITSELF && at->kill.state != KILL_ENDED && checkpoint_made(at, r)) {
                checkpoint_save(at);
                return;
        }
        if (!at->result.set && at->kill.state == KILL_NONE && (!failed || step->ignore_failure) &&
            at->step + 1 < at->t->m->step_count) {
                at->step++;
                attempt_submit_step(at);
                return;
        }
        if (!at->result.set)
                at->result.outcome = OUTCOME_EXITED;
        deliver(at);
}

bool attempt_frees(struct agent *a, const struct run_event *e)
{
        struct attempt *at = e->state == RUN_ENDED && !e->known
                                     ? agent_find(a, e->id.request, e->id.member, e->id.fence)
                                     : NULL;

        if (!at || at->state != ATTEMPT_RUNNING || !run_id_eq(e->id, attempt_task(at)) ||
            at->t->m->checkpointing || at->step + 1 != at->t->m->step_count)
                return false;
        commit(at, false);
        return true;
}

/* ---- reports of the other parts */

/* Called when a credential has arrived: continues an attempt that waited for it, and replaces the files of a
 * running one. */
static void on_credential(struct attempt *at)
{
        if (at->state == ATTEMPT_STAGING && at->staging == STAGING_CREDENTIALS)
                staging_go_on(at);
        else if (at->state == ATTEMPT_DELIVERING)
                output_transfers_go_on(at);
        else if (at->state < ATTEMPT_DELIVERING && credentials_renew(at) > 0)
                stage_credentials(at);
}

static void on_owner_held(struct agent *a, const char *owner, const char *why)
{
        if (why)
                offers_deny(a, owner, why);
        else
                offers_allow(a, owner);
}

const struct attempt_news attempt_news = {.stage = staging_go_on,
                                          .staged = staging_ended,
                                          .give_back = attempt_give_back,
                                          .outputs = delivery_outputs,
                                          .delivered = delivery_part_over,
                                          .printed = on_printed,
                                          .credential = on_credential,
                                          .step_over = attempt_step_over,
                                          .finish = attempt_finish,
                                          .owner_held = on_owner_held,
                                          .lost = attempt_lost};
