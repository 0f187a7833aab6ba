/* The core's life, and users' commands. */
#include <errno.h>

#include "base/mem.h"
#include "core/fairness/qos.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/lifecycle/draft.h"
#include "core/lifecycle/leave.h"
#include "core/model/forgotten.h"

#define FILE_NOW 100u /* jobs whose rows of history are written with their removal */

struct core *core_new(const struct core_config *config, const struct core_world *world)
{
        struct core *c = mem_new(struct core);

        c->magic = CORE_MAGIC;
        c->config = *config;
        c->world = *world;
        if (!c->config.weights.given)
                c->config.weights = (struct order_weights){.fair_share = 1, .qos = 1};
        if (!c->config.lease_ms)
                c->config.lease_ms = 300000;
        if (!c->config.lease_margin_ms)
                c->config.lease_margin_ms = 10000;
        if (!c->config.periodic_ms)
                c->config.periodic_ms = 20000;
        if (!c->config.keep_finished_ms)
                c->config.keep_finished_ms = 86400000;
        if (!c->config.keep_finished)
                c->config.keep_finished = 10000;
        if (!c->config.classes_max)
                c->config.classes_max = 1000;
        if (!c->config.rekey_slice)
                c->config.rekey_slice = 120;
        if (!c->config.names_max)
                c->config.names_max = 50000;
        if (!c->config.account_classes_max)
                c->config.account_classes_max = 20000;
        if (!c->config.better_wait_ms)
                c->config.better_wait_ms = 300000;
        if (!c->config.set_wait_ms)
                c->config.set_wait_ms = 30000;
        c->symbols = symbols_new();
        attributes_intern(&c->attr, c->symbols);
        eval_init(&c->eval, 0, config->seed);
        c->eval.steps_max = CORE_EVAL_STEPS_MAX;
        c->eval.bytes_max = CORE_EVAL_BYTES_MAX;
        c->eval.clock_ns = config->eval_clock_ns;
        c->requests = idmap_new();
        c->uuids = idmap_new();
        c->forgotten = forgotten_new();
        c->owners = map_new();
        c->templates = map_new();
        c->classes = map_new();
        c->agents = map_new();
        c->limits = limits_new();
        c->qualities = map_new();
        c->some_limit = limits_get(c->limits, STR("any/limit"));
        c->shares = shares_new(&config->share);
        c->index = index_new();
        c->reserve_round = 1;
        return c;
}

void core_free(struct core *c)
{
        if (!c)
                return;
        while (c->drafts)
                core_draft_free(c->drafts);
        set_deinit(&c->periodic_each);
        buf_deinit(&c->class_key);
        reserve_deinit(c);
        while (c->first)
                request_free(c, c->first);
        hops_deinit(c);
        data_deinit(c);
        estimates_deinit(c);
        index_free(c->index);
        eta_free(c->eta);
        gang_deinit(c);
        agents_free(c);
        free(c->dirty);
        free(c->changed);
        free(c->finished);
        free(c->significant);
        map_free(c->templates);
        map_free(c->classes);
        idmap_free(c->uuids);
        forgotten_free(c->forgotten);
        map_free(c->owners);
        idmap_free(c->requests);
        limits_free(c->limits);
        qos_deinit(c);
        shares_free(c->shares);
        eval_deinit(&c->eval);
        symbols_free(c->symbols);
        free(c);
}

struct symbols *core_symbols(struct core *c)
{
        return c->symbols;
}

void core_numbers_from(struct core *c, uint64_t request, uint32_t fence)
{
        c->request_from = request;
        c->fence_from = fence;
}

void core_lost(struct core *c, uint64_t last, int64_t wait_ms)
{
        c->lost_last = last;
        c->lost_until_ms = c->steady_ms + wait_ms;
}

int64_t core_lost_wait_ms(const struct core *c, uint64_t request)
{
        bool waits = request <= c->lost_last && c->lost_until_ms > c->steady_ms;

        return waits ? c->lost_until_ms - c->steady_ms : 0;
}

void core_clock(struct core *c, int64_t wall_ms, int64_t steady_ms)
{
        c->now_ms = wall_ms;
        c->steady_ms = steady_ms;
        c->eval.now_s = wall_ms / 1000;
}

/* ---- users' commands */

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

/* Tells the agents that have these attempts; members of one agent with one fence in one call. */
static void tell(struct core *c, struct request *r, const struct set *members, enum core_control what)
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
                set_add_all(to, &request_rare(r)->held);
        if (only)
                set_keep_all(to, only);
}

/* Hold and remove: at once for those that wait; those that run are vacated, and get there when their agent
 * has stopped them. */
static uint64_t act_stop(struct core *c, struct request *r, const struct core_command *cmd)
{
        bool rm = cmd->action == CORE_ACT_REMOVE;
        struct set wait = {0}, run = {0};
        uint64_t n = 0;

        if (rm)
                n += leave_remove(c, r, cmd->members);
        waiting_members(r, cmd->members, rm, true, &wait);
        add_where(r, cmd->members, any_attempt, &run);
        add_where(r, cmd->members, rm ? is_vacating : goes_back, &run);
        if (set_count(&run)) {
                n += emit_for(c, cmd, EVENT_VACATING, rm ? JOB_REMOVED : JOB_HELD, &run);
                tell(c, r, &run, rm ? CORE_REMOVE : CORE_HOLD);
        }
        n += emit_for(c, cmd, rm ? EVENT_REMOVED : EVENT_HELD, 0, &wait);
        if (rm && n <= FILE_NOW) /* what is small is in history at once; the rest comes with the ticks */
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
                tell(c, r, &run, CORE_SUSPEND);
                break;
        case CORE_ACT_CHECKPOINT:
                add_where(r, cmd->members, is_running, &run);
                SET_FOREACH (&run, m)
                        if (!request_part(r, (uint32_t)m, NULL)->template->checkpoints)
                                set_add(&never, (uint32_t)m);
                set_remove_all(&run, &never);
                n = set_count(&run);
                tell(c, r, &run, CORE_CHECKPOINT);
                break;
        case CORE_ACT_SIGNAL:
                add_where(r, cmd->members, is_running, &run);
                n = set_count(&run);
                if (cmd->value > 0 && cmd->value <= CORE_SIGNAL_MAX)
                        tell(c, r, &run, (enum core_control)(CORE_SIGNAL + cmd->value));
                break;
        case CORE_ACT_RESUME:
                add_where(r, cmd->members, is_suspended, &run);
                n = emit_for(c, cmd, EVENT_RESUMED, 0, &run);
                tell(c, r, &run, CORE_RESUME);
                break;
        default:
                add_where(r, cmd->members, any_attempt, &run);
                n = emit_for(c, cmd, EVENT_VACATING, JOB_IDLE, &run);
                tell(c, r, &run, CORE_VACATE);
                break;
        }
        set_deinit(&run);
        set_deinit(&never);
        return n;
}

/* Jobs that are held, and those that will be when their agent has stopped them: these go back to the queue
 * then. */
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
        set_remove_all(&all, &request_rare(r)->completed);
        set_remove_all(&all, &request_rare(r)->removed);
        n = emit_for(c, cmd, EVENT_PRIORITY, 0, &all);
        set_deinit(&all);
        return n;
}

static uint64_t act(struct core *c, struct request *r, const struct core_command *cmd)
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
        }
        return n;
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
        if (r->has_sets && cmd->members) {
                gang_widen(r, cmd->members, &widened);
                whole.members = &widened;
        }
        *ret_affected = act(c, r, &whole);
        set_deinit(&widened);
        return 0;
}
