/* Handles the runner's events about an attempt's tasks: of the running task, and of tasks that an earlier
 * agent started. */
#include "agent/attempt/event.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/attempt/checkpoint.h"
#include "agent/attempt/chirp.h"
#include "agent/attempt/exec.h"
#include "agent/attempt/journal.h"
#include "agent/attempt/kill.h"
#include "agent/attempt/life.h"
#include "agent/attempt/live_output.h"
#include "agent/attempt/location.h"
#include "agent/attempt/sandboxes.h"
#include "agent/container/container_step.h"
#include "agent/container/containers.h"
#include "agent/environment/environments.h"
#include "agent/model/expand.h"
#include "agent/outbox/outbox.h"
#include "agent/queue/containment.h"
#include "agent/queue/offers.h"
#include "agent/queue/wait.h"
#include "agent/transfer/movers.h"
#include "agent/transfer/stage.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "run/process/user_command.h"

static unsigned step_of(const struct run_event *e)
{
        return e->id.step % STEPS_MAX;
}

static unsigned round_of(const struct run_event *e)
{
        return e->id.step / STEPS_MAX;
}

static void record(struct attempt *at, const struct run_event *e)
{
        unsigned step = step_of(e);
        struct step_result *r = &at->result.steps[step];

        r->signaled = e->signaled;
        r->exit_code = e->exit_code;
        if (*at->t->m->steps[step].container && !r->signaled && r->exit_code > 128 &&
            r->exit_code <= 128 + SIGSYS) { /* an engine reports a signal in this way */
                r->signaled = true;
                r->exit_code -= 128;
        }
        r->started_ms = e->started_ms;
        r->ended_ms = e->ended_ms;
        if (step + 1 > at->result.step_count)
                at->result.step_count = step + 1;
        if (!at->result.started_ms || e->started_ms < at->result.started_ms)
                at->result.started_ms = e->started_ms;
        if (e->ended_ms > at->result.ended_ms)
                at->result.ended_ms = e->ended_ms;
        at->result.cpu_user_ms += e->cpu_user_ms;
        at->result.cpu_system_ms += e->cpu_system_ms;
        at->result.energy_uj += e->energy_uj;
        if (e->memory_peak_bytes > at->result.memory_peak_bytes)
                at->result.memory_peak_bytes = e->memory_peak_bytes;
        uint64_t ms = e->ended_ms > e->started_ms ? e->ended_ms - e->started_ms : 0;
        offers_job_took(at, ms ? ms * 1000 : 700);
}

/* Called when nothing of the step ran or will run, through no fault of the job. The attempt may be freed by
 * the call. */
static void not_begun(struct attempt *at, const char *why)
{
        bool first = at->step == 0 && at->checkpoint.round == 0 && !at->adopted;

        at->stepping = false;
        if (at->kill.state == KILL_ABANDONED) {
                attempt_forget(at);
        } else if (at->result.set || !first) { /* ended meanwhile, or an earlier task has begun */
                attempt_lost(at, why);
        } else {
                log_warn("msg=\"an attempt was not begun\" %s why=\"%s\"",
                         expand_log(at, (char[LOG_NAME]){0}), why);
                outbox_refuse(at->a, at->q->config->name, at, false, why);
                attempt_forget(at);
        }
}

/* Called when a task could not be started: decides whether the job is at fault. */
static void start_failed(struct attempt *at, const struct run_event *e)
{
        const struct job_step *step = &at->t->m->steps[step_of(e)];
        BUF_CLEANUP struct buf path = {0};
        const char *why = strerror(e->error);

        at->stepping = false;
        if (!strcmp(e->what, RUN_TOO_LATE)) {
                not_begun(at, e->text ? e->text : "the agent's shepherd came to it too late");
                return;
        }
        if (e->text) {
                attempt_set_outcome(at, OUTCOME_NOT_STARTED, HOLD_NOT_STARTED, "%s", e->text);
        } else if (!strcmp(e->what, "program")) {
                expand_program(at, step, &path);
                attempt_set_outcome(
                        at, OUTCOME_NOT_STARTED, HOLD_NOT_STARTED, "cannot run %s: %s", buf_z(&path),
                        e->error == ENOEXEC ? "it is neither a program nor a script with #!" : why);
        } else if (!strcmp(e->what, "stdin")) {
                expand_input(at, step, &path, NULL);
                attempt_set_outcome(at, OUTCOME_STAGING_FAILED, HOLD_INPUT, "cannot read its input %s: %s",
                                    buf_z(&path), why);
        } else if (!strcmp(e->what, "folder")) {
                attempt_set_outcome(at, OUTCOME_NOT_STARTED, HOLD_NOT_STARTED, "cannot run in %s: %s",
                                    at->iwd, why);
        } else if (!strcmp(e->what, "user")) {
                attempt_set_outcome(at, OUTCOME_NOT_STARTED, HOLD_NOT_STARTED,
                                    "the agent's `users` do not allow %s a local user", at->t->m->owner);
        } else if (!strcmp(e->what, "containment") && e->error == ENOSYS) {
                attempt_set_outcome(at, OUTCOME_NOT_STARTED, HOLD_NOT_STARTED,
                                    "the queue %s requires containment that its machine does not have",
                                    at->q->config->name);
        } else {
                log_error("msg=\"cannot start a job\" what=\"%s\" error=\"%s\"", e->what, why);
                machine_is_out_of_inodes(&at->a->machine, at->a->dir, e->error); /* closes the queues */
                attempt_set_outcome(at, OUTCOME_LOST, 0, "the agent could not start it (%s): %s", e->what,
                                    why);
        }
        at->result.hold_subcode = e->error;
        attempt_finish(at);
}

/* ---- events of the runner */

/* Handles an attempt that the runner no longer lists. */
static void not_known(struct attempt *at)
{
        bool local = queue_is_local(at->q);

        if (at->checkpoint.state == CHECKPOINT_SAVING)
                return;
        if (at->adopted && at->state != ATTEMPT_RUNNING)
                attempt_lost(at, at->stopped ? "the agent was stopped, and the job with it"
                                             : "the agent stopped before it was started");
        else if (at->state == ATTEMPT_RUNNING && at->stepping)
                attempt_lost(at, local ? "the agent's shepherd died, and its processes with it"
                                       : "the batch system no longer knows it");
        else if (at->state == ATTEMPT_RUNNING)
                attempt_step_over(at, RUN_ITSELF);
}

static void look_through(struct queue *q)
{
        for (int s = 0; s < ATTEMPT_DELIVERING; s++)
                for (struct attempt *at = q->lists[s], *next; at; at = next) {
                        next = at->next;
                        attempt_vacate_known(at);
                        if (at->seen != q->backend->generation)
                                not_known(at);
                        else if (at->adopted && !at->stepping && !checkpoint_under_way(at) &&
                                 at->state == ATTEMPT_RUNNING)
                                attempt_step_over(at, at->adopted_why);
                }
}

static void event_on_ready(void *arg, uint32_t containment, int hide_error)
{
        struct backend *b = arg;
        struct agent *a = b->a;

        if (b == a->backends[0])
                queue_containment_told(a, containment, hide_error);
        b->ready = true;
        free(b->unreachable);
        b->unreachable = NULL;
        for (size_t i = 0; i < a->queue_count; i++)
                if (a->queues[i]->backend == b)
                        look_through(a->queues[i]);
        if (b->runner == a->runner) {
                user_commands_back(a->user_commands);
                environments_back(a);
                if (!a->swept)
                        sandbox_sweep(a); /* removes sandboxes of jobs that are gone, although a batch system
                                             may be unreachable */
        }
        bool all = true;
        for (size_t i = 0; i < a->backend_count; i++)
                all = all && a->backends[i]->ready;
        if (!a->swept && all) { /* removes what no attempt claims */
                a->swept = true;
                containers_sweep(a);
                container_steps_sweep(a);
                if (a->cgroups)
                        cgroups_sweep(a->cgroups);
                sandbox_sweep(a);
        }
        offers_update(a, true);
        agent_turn_later(a);
}

/* Called when a runner is unreachable: its tasks go on, and it gets no new ones until it answers. */
static void on_unreachable(void *arg, const char *why)
{
        struct backend *b = arg;
        struct agent *a = b->a;

        b->ready = b->silent = false;
        b->generation++;
        free(b->unreachable);
        b->unreachable = why ? mem_dupz(why) : NULL;
        if (b->runner == a->runner)
                log_warn("msg=\"%s\" error=\"%s\"",
                         why ? "the shepherd cannot be started" : "the shepherd is gone",
                         LOG_TEXT(str_of(why ? why : "")));
        else
                log_warn("msg=\"the batch system is gone\" queue=%s error=\"%s\"", b->queue,
                         LOG_TEXT(str_of(why ? why : "")));
        if (b->runner == a->runner)
                user_commands_away(a->user_commands);
        if (b->runner == a->runner && a->users_path && !a->stopping) {
                /* only root can start another shepherd: the agent exits so that its service manager starts
                 * it again */
                a->exit_code = 1;
                loop_stop(a->loop);
        }
        offers_update(a, true);
        agent_turn_later(a);
}

/* Called when the runner is silent: its tasks go on. It gets no new tasks until it answers; requests sent to
 * it wait. */
static void on_silent(void *arg, const char *why)
{
        struct backend *b = arg;
        struct agent *a = b->a;

        free(b->unreachable);
        b->unreachable = why ? mem_dupz(why) : NULL;
        b->silent = why != NULL;
        if (why)
                log_error("msg=\"%s: its queues take no jobs until it does\"", why);
        else
                log_info("msg=\"the agent's shepherd answers again\"");
        offers_update(a, true);
        agent_turn_later(a);
}

/* ---- a runner that is silent */

#define LATE_MS 1000 /* time after which a record that the runner wrote in time is visible */

/* The tasks that the runner has begun, asked for once a turn. */
struct begun {
        struct buf ids;
        bool asked;
        int result; /* result of the question */
};

static bool can_tell(struct begun *b, struct runner *r)
{
        if (!b->asked)
                b->result = r->kind->begun(r, &b->ids);
        b->asked = true;
        return b->result == 0;
}

/* Returns whether it is unknown, and can be found out now, if the task has begun. */
static bool is_due(const struct attempt *at, int64_t now)
{
        if (at->begun)
                return false;
        /* attempt of an earlier agent, which the runner has not listed yet */
        if (at->state == ATTEMPT_WAITING)
                return at->adopted && !at->q->backend->ready;
        return at->state == ATTEMPT_RUNNING && at->stepping && !at->task_runs && at->begin_by_ms &&
               now > at->begin_by_ms + LATE_MS;
}

/* Returns whether the attempt is among the begun tasks (`ids`). A running attempt must be there with its
 * step; for an attempt of an earlier agent any step counts, because its step is unknown. */
static bool is_begun(const struct attempt *at, struct str ids)
{
        struct run_id id, task = attempt_task(at);

        for (size_t i = 0; i + sizeof(id) <= ids.n; i += sizeof(id)) {
                memcpy(&id, ids.p + i, sizeof(id));
                if (at->state == ATTEMPT_RUNNING ? run_id_eq(id, task)
                                                 : id.request == at->request && id.member == at->member &&
                                                           id.fence == at->fence && !(id.step & STEP_NO_JOBS))
                        return true;
        }
        return false;
}

static void look_whether_begun(struct attempt *at, struct str ids)
{
        at->begun = is_begun(at, ids);
        if (!at->begun && at->state == ATTEMPT_WAITING)
                attempt_lost(at, "the agent stopped before it was started");
        else if (!at->begun)
                not_begun(at, at->q->backend->unreachable);
        else if (at->state == ATTEMPT_RUNNING && !at->result.started_ms)
                at->result.started_ms = (uint64_t)clock_wall_ms(); /* begun, the time is unknown */
}

static void look_at_silent(struct queue *q)
{
        static const enum attempt_state states[] = {ATTEMPT_WAITING, ATTEMPT_RUNNING};
        struct begun b = {0};
        int64_t now = clock_boot_ms();

        for (unsigned s = 0; s < sizeof(states) / sizeof(*states); s++)
                for (struct attempt *at = q->lists[states[s]], *next; at; at = next) {
                        next = at->next;
                        if (is_due(at, now) && can_tell(&b, q->backend->runner))
                                look_whether_begun(at, buf_view(&b.ids));
                }
        buf_deinit(&b.ids);
}

/* ---- signals */

#define HANDLERS_MS 1000 /* time in which a program sets its handlers: a signal before would end it */

void attempt_signal(struct attempt *at, unsigned number)
{
        bool runs = at->state == ATTEMPT_RUNNING && at->stepping && at->task_runs;

        if (runs && clock_boot_ms() - at->runs_from_ms >= HANDLERS_MS)
                runner_signal(at->q->backend->runner, attempt_task(at), (int)number);
        else if (at->state <= ATTEMPT_RUNNING)
                at->signals |= UINT64_C(1) << (number - 1);
}

static void send_kept_signals(struct attempt *at)
{
        uint64_t signals = at->signals;

        at->signals = 0; /* those that cannot be sent yet are kept again */
        for (unsigned n = 1; signals; n++, signals >>= 1)
                if (signals & 1)
                        attempt_signal(at, n);
}

void attempt_tick(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++) {
                struct queue *q = a->queues[i];

                if (q->backend->silent)
                        look_at_silent(q);
                for (struct attempt *at = q->lists[ATTEMPT_RUNNING], *next; at; at = next) {
                        next = at->next;
                        if (at->signals)
                                send_kept_signals(at);
                }
        }
}

/* Records how a task of an earlier agent ended. The runner reports it after each absence, and it counts
 * once. For a task followed until the runner was lost, look_through continues with it. */
static void known_end(struct attempt *at, const struct run_event *e)
{
        bool followed = at->stepping && run_id_eq(e->id, attempt_task(at));

        if (!followed && step_of(e) < at->result.step_count)
                return;
        if (followed)
                at->stepping = false;
        record(at, e);
        at->adopted_why = e->why;
}

/* Called when the task is known to run or wait. */
static void runs(struct attempt *at, bool now)
{
        if (now && !at->task_runs)
                at->runs_from_ms = clock_boot_ms();
        at->task_runs = now;
}

/* Handles a task that the runner knows from before. */
static void known(struct attempt *at, const struct run_event *e)
{
        struct agent *a = at->a;

        at->seen = at->q->backend->generation;
        if (!at->adopted) {
                if (run_id_eq(e->id, attempt_task(at)))
                        runs(at, e->state == RUN_RUNNING);
                return;
        }
        if (at->state == ATTEMPT_WAITING) {
                at->has_sandbox = true;
                attempt_move(at, ATTEMPT_RUNNING);
        }
        if (step_of(e) > at->step)
                at->step = step_of(e);
        if (round_of(e) > at->checkpoint.round)
                at->checkpoint.round = round_of(e);
        if (e->slot != UINT32_MAX && !at->cgroup && a->cgroups)
                cgroup_adopt(a->cgroups, e->slot, &at->cgroup, NULL);
        if (e->state == RUN_WAITING) {
                at->stepping = true;
                runs(at, false);
        } else if (e->state == RUN_RUNNING) {
                at->stepping = true;
                runs(at, true);
                at->pid = e->native;
                at->result.started_ms = e->started_ms;
                chirp_open(at);
                live_output_begin(at);
                log_info("msg=adopted %s pid=%lld", expand_log(at, (char[LOG_NAME]){0}),
                         (long long)e->native);
        } else if (e->state == RUN_ENDED) {
                known_end(at, e);
        } else if (e->state == RUN_FAILED) {
                start_failed(at, e);
        } else if (e->state == RUN_LOST) {
                attempt_lost(at, e->text ? e->text : "it was lost while the agent was away");
        }
}

/* Returns whether the attempt waits for the end of this task. */
static bool is_followed(struct attempt *at, struct run_id id)
{
        return at->state == ATTEMPT_RUNNING && run_id_eq(id, attempt_task(at)) && at->stepping &&
               !at->container.ending;
}

static void on_event(struct backend *b, const struct run_event *e)
{
        struct agent *a = b->a;

        if (stage_event(a, e) || movers_event(a, e) || user_commands_event(a->user_commands, e) ||
            exec_event(a, e))
                return;
        struct attempt *at = agent_find(a, e->id.request, e->id.member, e->id.fence);
        if (!at || (e->id.step & STEP_NO_JOBS) || step_of(e) >= at->t->m->step_count ||
            round_of(e) < at->checkpoint.round) {
                /* a task without an attempt, or of a stage of an earlier agent */
                if (e->state == RUN_RUNNING || e->state == RUN_WAITING)
                        runner_kill(b->runner, e->id, 0);
                else
                        runner_forget(b->runner, e->id);
                return;
        }
        if (at->state == ATTEMPT_DONE) { /* the result is in the journal */
                runner_forget(b->runner, e->id);
                return;
        }
        if (e->known && (at->adopted || e->state == RUN_RUNNING || e->state == RUN_WAITING)) {
                known(at, e);
                return;
        }
        if (e->known)
                at->seen = b->generation;
        if (!is_followed(at, e->id))
                return;
        if (e->state == RUN_RUNNING) {
                at->pid = e->native;
                if (!at->result.started_ms)
                        at->result.started_ms = e->started_ms;
                if (at->suspended)
                        b->runner->kind->suspend(b->runner, e->id);
                runs(at, true);
        } else if (e->state == RUN_ENDED) {
                record(at, e);
                if (e->why == RUN_WALLTIME || e->why == RUN_MEMORY)
                        attempt_location_tell_end(at);
                attempt_step_over(at,
                                  e->why == RUN_KILLED && at->kill.state != KILL_NONE ? RUN_ITSELF : e->why);
        } else if (e->state == RUN_FAILED) {
                attempt_location_tell_end(at);
                start_failed(at, e);
        } else if (e->state == RUN_LOST) {
                attempt_lost(at, e->text ? e->text : "the agent's shepherd was away");
        }
}

static void on_tasks(void *arg, const struct run_event *events, size_t count)
{
        struct backend *b = arg;
        struct agent *a = b->a;
        /* waiting attempts are started in the freed room before the outputs of ended ones are handled */
        bool freed = false;

        for (size_t i = 0; i < count; i++)
                freed |= attempt_frees(a, &events[i]);
        if (freed && queues_count(a, ATTEMPT_WAITING)) {
                attempt_schedule(a);
                journal_flush(a);
                b->runner->kind->flush(b->runner);
        }
        for (size_t i = 0; i < count; i++)
                on_event(b, &events[i]);
        agent_turn_later(a);
}

static void on_signal_waits(void *arg, struct run_id id)
{
        struct backend *b = arg;
        struct attempt *at = agent_find(b->a, id.request, id.member, id.fence);

        if (at && is_followed(at, id))
                attempt_vacate_unheard(at);
        agent_turn_later(b->a);
}

static void on_checkpointed(void *arg, struct run_id id, const char *files)
{
        struct backend *b = arg;
        struct attempt *at = agent_find(b->a, id.request, id.member, id.fence);

        if (at && is_followed(at, id))
                checkpoint_carried(at, files);
        agent_turn_later(b->a);
}

static void on_quoted(void *arg, const struct run_quote *quote)
{
        queue_wait_told(arg, quote);
}

const struct run_observer attempt_observer = {.tasks = on_tasks,
                                              .signal_waits = on_signal_waits,
                                              .checkpointed = on_checkpointed,
                                              .quoted = on_quoted,
                                              .ready = event_on_ready,
                                              .unreachable = on_unreachable,
                                              .silent = on_silent};
