/* Follows a job at the other server. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>

#include "base/format/json_read.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "base/u64.h"
#include "run/drover/acts.h"
#include "run/drover/answers.h"
#include "run/drover/checkpoint.h"
#include "run/drover/give_back.h"
#include "run/drover/job.h"
#include "run/drover/link.h"
#include "run/drover/remote_number.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

#define HOLD_USER         1 /* HTCondor's code: a user there held it, and may release it */
#define HOLD_SUBMIT       15
#define HOLD_MEMORY       34
#define HOLD_JOB_DURATION 46
#define HOLD_WALLTIME     47
#define OUTPUTS_MAX       100000 /* as many as an agent delivers */
#define MEMORY_MAX_MIB    (INT64_C(1) << 40)
#define JOULES_MAX        1000000000000ll
#define CLOCK_AHEAD_MS    86400000 /* tolerance for the other server's clock being ahead */

static const char *job_text(const json_t *o, const char *name)
{
        const char *z = json_string_value(json_object_get(o, name));

        return z ? z : "";
}

/* ---- how a job ended */

static void measured(const json_t *job, struct run_event *e)
{
        const json_t *ad = json_object_get(job, "ad");

        e->started_ms = remote_number_time(ad, "DroverStartedMs", 1);
        if (!e->started_ms)
                e->started_ms = remote_number_time(ad, "JobCurrentStartDate", 1000);
        e->ended_ms = remote_number_time(job, "ended_ms", 1);
        if (!e->ended_ms)
                e->ended_ms = remote_number_time(ad, "CompletionDate", 1000);
        e->ended_ms = u64_min(e->ended_ms, (uint64_t)clock_wall_ms() + CLOCK_AHEAD_MS);
        e->started_ms = u64_min(e->started_ms, e->ended_ms);
        e->cpu_user_ms = remote_number_time(ad, "RemoteUserCpu", 1000);
        e->cpu_system_ms = remote_number_time(ad, "RemoteSysCpu", 1000);
        e->memory_peak_bytes = (uint64_t)remote_number_within(ad, "MemoryUsage", 0, MEMORY_MAX_MIB) << 20;
        e->energy_uj = (uint64_t)remote_number_within(ad, "EnergyJoules", 0, JOULES_MAX) * 1000000;
}

static void completed(struct remote_task *t, const json_t *job)
{
        const json_t *file, *outputs = json_object_get(json_object_get(job, "ad"), "DroverOutputs");
        size_t i;

        t->result = (struct run_event){.state = RUN_ENDED};
        t->result.signaled = json_is_integer(json_object_get(job, "exit_signal"));
        t->result.exit_code = t->result.signaled
                                      ? (int)remote_number_within(job, "exit_signal", 1, SIGRTMAX)
                                      : (int)remote_number_within(job, "exit_code", INT_MIN, INT_MAX);
        measured(job, &t->result);
        if (!t->begun) {
                t->begun = true;
                t->started_ms = t->result.started_ms;
                if (t->remote->link.listed)
                        remote_tell(t->remote, t, false);
        }
        remote_files_deinit(&t->files);
        if (json_array_size(outputs) > OUTPUTS_MAX) {
                BUF_CLEANUP struct buf b = {0};

                buf_printf(&b, "it has %zu outputs, and more than %d are not brought here",
                           json_array_size(outputs), OUTPUTS_MAX);
                remote_fail(t, "output", E2BIG, buf_z(&b));
                return;
        }
        json_array_foreach (outputs, i, file) {
                MEM_GROW(t->files.v, t->files.cap, t->files.n + 1);
                t->files.v[t->files.n++] = (struct remote_file){
                        .name = mem_dupz(job_text(file, "Name")),
                        .size = (uint64_t)remote_number_within(file, "Size", 0, INT64_MAX),
                        .mode = (unsigned)remote_number_within(file, "Mode", 0, INT_MAX)};
        }
        t->state = REMOTE_FETCHING;
        remote_settled(t);
        timer_start(t->remote->later, 0);
}

static void ended(struct remote_task *t, enum run_why why)
{
        uint64_t now = (uint64_t)clock_wall_ms();

        remote_over(t,
                    &(struct run_event){.state = RUN_ENDED,
                                        .why = why,
                                        .signaled = true,
                                        .exit_code = 15,
                                        .started_ms = u64_min(t->started_ms, now),
                                        .ended_ms = now},
                    NULL);
}

static void removed(struct remote_task *t, const json_t *job)
{
        BUF_CLEANUP struct buf b = {0};
        const char *reason = job_text(json_object_get(job, "ad"), "RemoveReason");

        if (!t->killing && !strcmp(reason, REMOTE_REASON)) {
                remote_given_back(t);
        } else if (t->killing) {
                ended(t, t->lease_ended ? RUN_LEASE_ENDED : RUN_KILLED);
        } else if (t->in->lease_over || str_starts(str_of(reason), STR("the submitter's lease ended"))) {
                remote_over(t, &(struct run_event){.state = RUN_LOST},
                            "the other server had not heard of this agent for the lease's time");
        } else {
                buf_printf(&b, "removed at %s as %llu.%u: %s", t->remote->queue,
                           (unsigned long long)remote_number(t), t->member,
                           *reason ? reason : "no reason was given");
                remote_fail(t, "job", ECANCELED, buf_z(&b));
        }
}

static void job_failed(struct remote_task *t, const json_t *job)
{
        int64_t code = remote_number_within(job, "hold_code", 0, INT_MAX);

        remote_act(t, REMOTE_REMOVE);
        if (code == HOLD_WALLTIME || code == HOLD_JOB_DURATION)
                ended(t, RUN_WALLTIME);
        else if (code == HOLD_MEMORY)
                ended(t, RUN_MEMORY);
        else
                remote_fail(t, "job", (int)remote_number_within(job, "hold_subcode", INT_MIN, INT_MAX),
                            job_text(job, "hold_reason"));
}

/* Handles the answer with the place at which the job failed. Without an answer the task fails without it. */
static void on_failed_path(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_task *t = arg;
        json_t *doc = status == 200 ? remote_json(body) : NULL, *job = t->failed;
        const json_t *hops = json_object_get(doc, "hops");

        t->call = NULL;
        if (json_is_array(hops)) {
                remote_set_hops(t, hops);
        }
        json_decref(doc);
        if (!status) {
                t->dirty = true;
                remote_unreachable(t->remote, err->text);
                return;
        }
        t->failed = NULL;
        job_failed(t, job);
        json_decref(job);
}

/* Handles a held job. A job that was held by a failure, not by a user there, is ended, since it is released
 * at its origin, not there. Returns true if it waits there to be released. */
static bool held(struct remote_task *t, json_t *job)
{
        BUF_CLEANUP struct buf path = {0};
        int64_t code = remote_number_within(job, "hold_code", 0, INT_MAX);

        if (code == HOLD_USER || code == HOLD_SUBMIT) {
                remote_settled(t);
                return true;
        }
        json_decref(t->failed);
        t->failed = json_incref(job);
        buf_printf(&path, "/v1/jobs/%llu.%u/path", (unsigned long long)remote_number(t), t->member);
        const struct http_call_spec spec = {.method = "GET", .path = buf_z(&path)};
        t->call = http_client_call(t->remote->client, &spec, on_failed_path, t);
        return false;
}

static void runs(struct remote_task *t, const json_t *job)
{
        if (!t->begun) {
                t->begun = true;
                t->started_ms = remote_number_time(job, "started_ms", 1);
                if (!t->started_ms ||
                    t->started_ms > (uint64_t)clock_wall_ms()) /* by the other server's clock */
                        t->started_ms = (uint64_t)clock_wall_ms();
                if (t->remote->link.listed)
                        remote_tell(t->remote, t, false);
        }
        if (t->suspended && t->held) { /* it began before the hold arrived */
                t->held = false;
                remote_act(t, REMOTE_SUSPEND);
        }
        t->given_back_ms = 0; /* it began before it could be removed */
        if (str_eqz(str_of(job_text(job, "state")), "running"))
                remote_signals_due(t);
        remote_settled(t);
}

/* Learns the task's orders from the job's state; otherwise a job that was suspended before a restart of the
 * agent could not be resumed. */
static void learn(struct remote_task *t, const json_t *job, const char *state)
{
        bool held = !strcmp(state, "held") &&
                    remote_number_within(job, "hold_code", 0, INT_MAX) == HOLD_USER &&
                    !strcmp(job_text(job, "hold_reason"), REMOTE_REASON);

        t->restored = false;
        t->held = held;
        t->suspended = held || !strcmp(state, "suspended");
}

static void look_idle(struct remote_task *t, bool idle)
{
        if (idle && !t->idle)
                t->idle_ms = clock_boot_ms();
        t->idle = idle;
}

/* Acts on the job's state. Returns true if it waits there. */
static bool see(struct remote_task *t, json_t *job)
{
        const char *state = job_text(job, "state");
        bool past = json_object_get(json_object_get(job, "ad"), "DroverLog") != NULL;

        look_idle(t, !strcmp(state, "idle"));
        if (t->restored)
                learn(t, job, state);
        if (!strcmp(state, "completed") || !strcmp(state, "removed")) {
                if (!past) { /* its record is not written yet */
                        t->dirty = true;
                        t->not_before_ms = clock_boot_ms() + 200;
                        return false;
                }
                if (*state == 'c')
                        completed(t, job);
                else
                        removed(t, job);
        } else if (!strcmp(state, "held")) {
                return held(t, job);
        } else if (!strcmp(state, "running") || !strcmp(state, "suspended")) {
                runs(t, job);
        } else {
                remote_settled(t);
                return strcmp(state, "vacating") != 0;
        }
        return false;
}

/* Returns whether this is a different job with the same number: the other server was set up anew or
 * restored. */
static bool is_another(struct remote_task *t, const json_t *job)
{
        const char *global = job_text(json_object_get(job, "ad"), "GlobalJobId");

        if (!t->global && *global)
                t->global = mem_dupz(global);
        return t->global && *global && strcmp(t->global, global) != 0;
}

static void on_job(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_task *t = arg;
        json_t *doc = status == 200 ? remote_json(body) : NULL;

        t->call = NULL;
        if (doc && !is_another(t, doc)) {
                bool waits = see(t, doc);

                if (!remote_checkpoint_bring(t, doc) && waits && t->signals)
                        event_queue_signal_waits(t->remote->events, t->id);
        } else if (doc || status == 404) {
                remote_over(t, &(struct run_event){.state = RUN_LOST},
                            "the other server does not know it any more");
        } else {
                t->dirty = true;
                t->not_before_ms = clock_boot_ms() + (status ? 1000 : 0);
                if (!status)
                        remote_unreachable(t->remote, err->text);
        }
        json_decref(doc);
}

void remote_look(struct remote_task *t)
{
        BUF_CLEANUP struct buf path = {0};

        if (t->call)
                return;
        t->dirty = false;
        buf_printf(&path, "/v1/jobs/%llu.%u", (unsigned long long)remote_number(t), t->member);
        const struct http_call_spec spec = {.method = "GET", .path = buf_z(&path)};
        t->call = http_client_call(t->remote->client, &spec, on_job, t);
}
