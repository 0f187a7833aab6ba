/* Carries out users' commands. */
#include "base/mem.h"
#include "core/events/apply.h"
#include "core/events/history.h"
#include "core/lifecycle/edit.h"
#include "core/lifecycle/retention.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"

#define FILE_NOW 100u /* number of removed jobs up to which rows of history are written at once */

static void add_where(const struct request *r, const struct set *members, bool (*want)(const struct job *),
                      struct set *to)
{
        void *value;

        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);) {
                const struct job *j = value;

                if (j->queue && want(j) && (!members || set_has(members, j->member)))
                        set_add(to, j->member);
        }
}

static bool any_attempt(const struct job *j)
{
        return j->state != JOB_VACATING;
}
static bool is_vacating(const struct job *j)
{
        return j->state == JOB_VACATING && j->goal != JOB_REMOVED;
}
static bool goes_back(const struct job *j)
{
        return j->state == JOB_VACATING && j->goal == JOB_IDLE;
}
static bool will_be_held(const struct job *j)
{
        return j->state == JOB_VACATING && j->goal == JOB_HELD;
}
static bool is_running(const struct job *j)
{
        return j->state == JOB_RUNNING;
}
static bool is_suspended(const struct job *j)
{
        return j->state == JOB_SUSPENDED;
}

/* Tells the agents that have these attempts, with one call for members of one agent with one fence. */
static void tell_agents(struct core *c, struct request *r, const struct set *members, enum core_control what)
{
        struct set left = {0};

        set_copy(&left, members);
        while (set_count(&left)) {
                struct job *lead = request_job(r, (uint32_t)set_first(&left));
                struct set same = {0};

                SET_FOREACH (&left, m) {
                        struct job *j = request_job(r, (uint32_t)m);

                        if (j->queue->agent == lead->queue->agent && j->fence == lead->fence)
                                set_add(&same, (uint32_t)m);
                }
                c->world.control(c->world.arg, lead->queue->agent->name, what, r->id, lead->fence, &same);
                set_remove_all(&left, &same);
                set_deinit(&same);
        }
        set_deinit(&left);
}

static uint64_t emit_for(struct core *c, const struct core_command *cmd, enum event_type type,
                         enum job_state next, const struct set *members)
{
        struct event e = {.type = type,
                          .request = cmd->request,
                          .members = *members,
                          .next = next,
                          .code = next == JOB_HELD || type == EVENT_HELD ? CORE_HOLD_USER : 0,
                          .reason = cmd->reason,
                          .value = cmd->value};

        if (set_count(members) == 0)
                return 0;
        core_emit(c, &e, NULL);
        return set_count(members);
}

static void waiting_members(const struct request *r, const struct set *only, bool held, bool idle,
                            struct set *to)
{
        if (idle)
                request_idle_all(r, to);
        if (held)
                set_add_all(to, &request_cold(r)->held);
        if (only)
                set_keep_all(to, only);
}

/* Holds or removes members: waiting ones at once; running ones are vacated, and change state when their agent
 * has stopped them. */
static uint64_t act_stop(struct core *c, struct request *r, const struct core_command *cmd)
{
        bool rm = cmd->action == CORE_ACT_REMOVE;
        struct set wait = {0}, run = {0};
        uint64_t n = 0;

        if (rm)
                n += retention_remove(c, r, cmd->members);
        waiting_members(r, cmd->members, rm, true, &wait);
        add_where(r, cmd->members, any_attempt, &run);
        add_where(r, cmd->members, rm ? is_vacating : goes_back, &run);
        if (set_count(&run)) {
                n += emit_for(c, cmd, EVENT_VACATING, rm ? JOB_REMOVED : JOB_HELD, &run);
                tell_agents(c, r, &run, rm ? CORE_REMOVE : CORE_HOLD);
        }
        n += emit_for(c, cmd, rm ? EVENT_REMOVED : EVENT_HELD, 0, &wait);
        if (rm && n <= FILE_NOW) /* writes few rows at once; many are left to the ticks */
                history_file_slice(c, FILE_NOW);
        set_deinit(&wait);
        set_deinit(&run);
        return n;
}

static uint64_t act_attempts(struct core *c, struct request *r, const struct core_command *cmd)
{
        struct set run = {0}, never = {0};
        uint64_t n;

        switch (cmd->action) {
        case CORE_ACT_SUSPEND:
                add_where(r, cmd->members, is_running, &run);
                n = emit_for(c, cmd, EVENT_SUSPENDED, 0, &run);
                tell_agents(c, r, &run, CORE_SUSPEND);
                break;
        case CORE_ACT_CHECKPOINT:
                add_where(r, cmd->members, is_running, &run);
                SET_FOREACH (&run, m)
                        if (!request_part(r, (uint32_t)m, NULL)->job_template->checkpoints)
                                set_add(&never, (uint32_t)m);
                set_remove_all(&run, &never);
                n = set_count(&run);
                tell_agents(c, r, &run, CORE_CHECKPOINT);
                break;
        case CORE_ACT_SIGNAL:
                add_where(r, cmd->members, is_running, &run);
                n = set_count(&run);
                if (cmd->value > 0 && cmd->value <= CORE_SIGNAL_MAX)
                        tell_agents(c, r, &run, (enum core_control)(CORE_SIGNAL + cmd->value));
                break;
        case CORE_ACT_RESUME:
                add_where(r, cmd->members, is_suspended, &run);
                n = emit_for(c, cmd, EVENT_RESUMED, 0, &run);
                tell_agents(c, r, &run, CORE_RESUME);
                break;
        default:
                add_where(r, cmd->members, any_attempt, &run);
                n = emit_for(c, cmd, EVENT_VACATING, JOB_IDLE, &run);
                tell_agents(c, r, &run, CORE_VACATE);
                break;
        }
        set_deinit(&run);
        set_deinit(&never);
        return n;
}

/* Releases held jobs, and returns jobs to the queue that are being stopped in order to be held. */
static uint64_t act_release(struct core *c, struct request *r, const struct core_command *cmd)
{
        struct set held = {0}, stopping = {0};
        uint64_t n;

        waiting_members(r, cmd->members, true, false, &held);
        add_where(r, cmd->members, will_be_held, &stopping);
        n = emit_for(c, cmd, EVENT_RELEASED, 0, &held) +
            emit_for(c, cmd, EVENT_VACATING, JOB_IDLE, &stopping);
        set_deinit(&held);
        set_deinit(&stopping);
        return n;
}

static uint64_t act_priority(struct core *c, struct request *r, const struct core_command *cmd)
{
        struct set all = {0};
        uint64_t n;

        set_add_range(&all, 0, r->count);
        if (cmd->members)
                set_keep_all(&all, cmd->members);
        set_remove_all(&all, &request_cold(r)->completed);
        set_remove_all(&all, &request_cold(r)->removed);
        n = emit_for(c, cmd, EVENT_PRIORITY, 0, &all);
        set_deinit(&all);
        return n;
}

static uint64_t act_on_request(struct core *c, struct request *r, const struct core_command *cmd)
{
        uint64_t n = 0;

        switch (cmd->action) {
        case CORE_ACT_HOLD:
        case CORE_ACT_REMOVE: n = act_stop(c, r, cmd); break;
        case CORE_ACT_RELEASE: n = act_release(c, r, cmd); break;
        case CORE_ACT_VACATE:
        case CORE_ACT_CHECKPOINT:
        case CORE_ACT_SIGNAL:
        case CORE_ACT_SUSPEND:
        case CORE_ACT_RESUME: n = act_attempts(c, r, cmd); break;
        case CORE_ACT_PRIORITY: n = act_priority(c, r, cmd); break;
        case CORE_ACT_EDIT: break; /* see edit_members */
        }
        return n;
}

int core_members_recorded(struct core *c, uint64_t request, struct set *to)
{
        struct request *r = request_find(c, request);
        void *value;

        if (!r)
                return CORE_UNKNOWN;
        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);) {
                const struct job *j = value;

                if (job_state_is_idle(j->state) || j->state == JOB_HELD)
                        set_add(to, j->member);
        }
        return 0;
}

int core_act(struct core *c, const struct core_command *cmd, uint64_t *ret_affected, struct err *err)
{
        struct request *r = request_find(c, cmd->request);
        struct core_command whole = *cmd;
        struct set widened = {0};

        *ret_affected = 0;
        if (!r)
                return err_set(err, CORE_UNKNOWN, "there is no request %llu",
                               (unsigned long long)cmd->request);
        if (cmd->owner.n && !str_eqz(cmd->owner, request_owner(r)))
                return err_set(err, CORE_FORBIDDEN, "request %llu belongs to %s", (unsigned long long)r->id,
                               request_owner(r));
        if (cmd->members && set_next(cmd->members, r->count) != SET_END)
                return err_set(err, CORE_UNKNOWN, "request %llu has only the jobs %llu.0 to %llu.%u",
                               (unsigned long long)r->id, (unsigned long long)r->id,
                               (unsigned long long)r->id, r->count - 1);
        if (cmd->action == CORE_ACT_EDIT)
                return edit_members(c, r, cmd, ret_affected, err);
        if (r->has_gangs && cmd->members) {
                gang_widen(r, cmd->members, &widened);
                whole.members = &widened;
        }
        *ret_affected = act_on_request(c, r, &whole);
        set_deinit(&widened);
        return 0;
}
