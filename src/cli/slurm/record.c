#include "cli/slurm/record.h"

#include <pwd.h>

#include "cli/client/jobs.h"
#include "cli/slurm/batch.h"
#include "cli/terminal/human.h"

static const struct {
        const char *name, *brief;
} states[RECORD_STATES] = {
        [RECORD_PENDING] = {"PENDING", "PD"},         [RECORD_RUNNING] = {"RUNNING", "R"},
        [RECORD_SUSPENDED] = {"SUSPENDED", "S"},      [RECORD_COMPLETED] = {"COMPLETED", "CD"},
        [RECORD_CANCELLED] = {"CANCELLED", "CA"},     [RECORD_FAILED] = {"FAILED", "F"},
        [RECORD_TIMEOUT] = {"TIMEOUT", "TO"},         [RECORD_NODE_FAIL] = {"NODE_FAIL", "NF"},
        [RECORD_DEADLINE] = {"DEADLINE", "DL"},       [RECORD_OUT_OF_MEMORY] = {"OUT_OF_MEMORY", "OOM"},
        [RECORD_CONFIGURING] = {"CONFIGURING", "CF"}, [RECORD_COMPLETING] = {"COMPLETING", "CG"},
};

const char *record_state_name(enum record_state state)
{
        return states[state].name;
}

const char *record_state_short(enum record_state state)
{
        return states[state].brief;
}

enum record_state record_state_of(struct str name)
{
        enum record_state state = 0;

        while (state < RECORD_STATES && !str_ieqz(name, states[state].name) &&
               !str_ieqz(name, states[state].brief))
                state++;
        return state;
}

bool record_is_over(const struct record *r)
{
        return r->state >= RECORD_COMPLETED && r->state <= RECORD_OUT_OF_MEMORY;
}

static int64_t number(const struct record *r, const char *attribute, int64_t otherwise)
{
        return view_integer(view_get(r->ad, attribute), otherwise);
}

enum hold {
        HOLD_USER = 1,
        HOLD_SUBMIT = 15,
        HOLD_MEMORY = 34,
        HOLD_DURATION = 46,
        HOLD_EXECUTE = 47,
        HOLD_DEPENDENCY = 1001,
        HOLD_LOST = 1002
};

/* A job that the agent has ended, or could not begin, is held for a moment before the server removes it. */
static void judge_held(struct record *r)
{
        int64_t code = view_integer(view_get(r->job, "hold_code"), 0);

        r->state = RECORD_PENDING;
        r->reason = code == HOLD_USER || code == HOLD_SUBMIT ? "JobHeldUser"
                    : code == HOLD_DEPENDENCY                ? "DependencyNeverSatisfied"
                                                             : "JobHeldAdmin";
        if (!view_there(view_get(r->ad, "SlurmName")) || code == HOLD_USER || code == HOLD_SUBMIT ||
            code == HOLD_DEPENDENCY || code == HOLD_LOST || code == 4)
                return;
        r->state = code == HOLD_DURATION || code == HOLD_EXECUTE ? RECORD_TIMEOUT
                   : code == HOLD_MEMORY                         ? RECORD_OUT_OF_MEMORY
                                                                 : RECORD_FAILED;
}

/* By whom a job was removed says its reason: a user, or the job's own policy, which sbatch has written. */
static void judge_removed(struct record *r)
{
        BUF_CLEANUP struct buf reason = {0};
        int64_t deadline_s = number(r, "SlurmDeadline", 0), memory = number(r, "RequestMemory", 0);

        view_text(view_get(r->ad, "RemoveReason"), &reason);
        r->state = RECORD_CANCELLED;
        if (!view_there(view_get(r->ad, "SlurmName")) ||
            str_search(buf_view(&reason), STR("PeriodicRemove")) < 0)
                return;
        if (r->limit_s && number(r, "RemoteWallClockTime", 0) >= r->limit_s)
                r->state = RECORD_TIMEOUT;
        else if (deadline_s && r->ended_s > deadline_s)
                r->state = RECORD_DEADLINE;
        else if (memory && number(r, "MemoryUsage", 0) >= memory)
                r->state = RECORD_OUT_OF_MEMORY;
        else if (number(r, "SlurmRequeue", 1) == 0 && r->started_s &&
                 number(r, "RemoteWallClockTime", 0) == 0)
                r->state = RECORD_NODE_FAIL;
        else
                r->state = RECORD_FAILED;
}

static void judge_idle(struct record *r)
{
        r->state = RECORD_PENDING;
        r->reason = view_there(view_get(r->job, "waits_for")) ? "Dependency"
                    : number(r, "DeferralTime", 0) > r->now_s ? "BeginTime"
                    : number(r, "JobMaterializeLimit", 0) > 0 ? "JobArrayTaskLimit"
                                                              : "Resources";
}

static void judge(struct record *r)
{
        static const struct {
                const char *drover;
                enum record_state state;
        } plain[] = {{"matched", RECORD_CONFIGURING},
                     {"staging", RECORD_CONFIGURING},
                     {"running", RECORD_RUNNING},
                     {"suspended", RECORD_SUSPENDED},
                     {"vacating", RECORD_COMPLETING}};
        struct view state = view_get(r->job, "state");

        r->reason = "None";
        for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
                if (view_is(state, plain[i].drover)) {
                        r->state = plain[i].state;
                        return;
                }
        if (job_is_idle(state)) {
                judge_idle(r);
        } else if (view_is(state, "held")) {
                judge_held(r);
        } else if (view_is(state, "removed")) {
                judge_removed(r);
        } else {
                r->state = r->exit_code == 0 && r->exit_signal == 0 ? RECORD_COMPLETED : RECORD_FAILED;
        }
        if (r->state == RECORD_FAILED)
                r->reason = "NonZeroExitCode";
        else if (r->state == RECORD_TIMEOUT)
                r->reason = "TimeLimit";
        else if (r->state == RECORD_OUT_OF_MEMORY)
                r->reason = "OutOfMemory";
        else if (r->state == RECORD_DEADLINE)
                r->reason = "DeadLine";
}

void record_read(struct view job, int64_t now_s, struct record *ret)
{
        struct record r = {.job = job, .ad = view_get(job, "ad"), .now_s = now_s};

        r.request = view_integer(view_get(job, "request"), 0);
        r.member = view_integer(view_get(job, "member"), 0);
        r.task = number(&r, "SlurmTask", -1);
        if (r.task < 0 && r.member > 0)
                r.task = r.member;
        r.submitted_s = view_integer(view_get(job, "submitted_ms"), 0) / 1000;
        r.started_s = view_integer(view_get(job, "started_ms"), 0) / 1000;
        r.ended_s = view_integer(view_get(job, "ended_ms"), 0) / 1000;
        r.limit_s = number(&r, "AllowedExecuteDuration", 0);
        r.exit_code = view_integer(view_get(job, "exit_code"), 0);
        r.exit_signal = view_integer(view_get(job, "exit_signal"), 0);
        r.cpus = number(&r, "RequestCpus", 1);
        r.tasks = number(&r, "SlurmTasksPerJob", 1);
        r.nodes = number(&r, "NodeCount", 1);
        judge(&r);
        if (r.state == RECORD_PENDING || r.state == RECORD_CONFIGURING)
                r.started_s = 0;
        if (record_is_over(&r) && r.ended_s == 0)
                r.ended_s = view_integer(view_get(job, "entered_ms"), 0) / 1000;
        if (r.started_s)
                r.elapsed_s = (record_is_over(&r) ? r.ended_s : now_s) - r.started_s;
        if (r.elapsed_s < 0)
                r.elapsed_s = 0;
        *ret = r;
}

/* ---- texts */

void record_id(const struct record *r, struct buf *out)
{
        buf_printf(out, "%lld", (long long)r->request);
        if (r->task >= 0)
                buf_printf(out, "_%lld", (long long)r->task);
        if (r->step)
                buf_printf(out, ".%s", r->step);
}

int64_t record_number(const struct record *r)
{
        return r->request + r->member * BATCH_MEMBER_STEP;
}

void record_text(const struct record *r, const char *attribute, const char *otherwise, struct buf *out)
{
        BUF_CLEANUP struct buf text = {0};

        view_text(view_get(r->ad, attribute), &text);
        if (text.n)
                human_safe(out, buf_view(&text));
        else
                buf_addz(out, otherwise);
}

void record_output(const struct record *r, struct buf *out)
{
        bool ours = view_there(view_get(r->ad, "SlurmOut"));

        record_text(r, ours ? "SlurmOut" : "Out", "/dev/null", out);
}

void record_error(const struct record *r, struct buf *out)
{
        bool ours = view_there(view_get(r->ad, "SlurmErr"));

        if (!ours && !view_there(view_get(r->ad, "Err")))
                record_output(r, out);
        else
                record_text(r, ours ? "SlurmErr" : "Err", "/dev/null", out);
}

void record_owner(const struct record *r, struct buf *out)
{
        BUF_CLEANUP struct buf text = {0};
        ptrdiff_t at;

        view_text(view_get(r->job, "owner"), &text);
        at = str_rfind(buf_view(&text), '@');
        human_safe(out, at > 0 ? str_head(buf_view(&text), (size_t)at) : buf_view(&text));
}

void record_name(const struct record *r, struct buf *out)
{
        BUF_CLEANUP struct buf cmd = {0};
        ptrdiff_t slash;
        size_t before = out->n;

        record_text(r, "SlurmName", "", out);
        if (out->n == before)
                record_text(r, "JobBatchName", "", out);
        if (out->n > before)
                return;
        view_text(view_get(r->job, "cmd"), &cmd);
        slash = str_rfind(buf_view(&cmd), '/');
        human_safe(out, str_skip(buf_view(&cmd), (size_t)(slash + 1)));
}

void record_partition(const struct record *r, struct buf *out)
{
        BUF_CLEANUP struct buf queue = {0};

        view_text(view_get(r->job, "queue"), &queue);
        if (queue.n)
                human_safe(out, buf_view(&queue));
        else
                record_text(r, "SlurmPartition", "any", out);
}

void record_node(const struct record *r, struct buf *out)
{
        BUF_CLEANUP struct buf agent = {0};

        if (r->state == RECORD_PENDING)
                return;
        view_text(view_get(r->job, "agent"), &agent);
        human_safe(out, buf_view(&agent));
}

int64_t record_uid(const struct record *r)
{
        BUF_CLEANUP struct buf owner = {0};
        const struct passwd *who;

        record_owner(r, &owner);
        who = getpwnam(buf_z(&owner));
        return who ? (int64_t)who->pw_uid : 4294967294;
}
