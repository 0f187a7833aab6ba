/* The core's life, submits, and users' commands. */
#include <errno.h>

#include "base/mem.h"
#include "core/claim.h"
#include "core/gang.h"
#include "core/leave.h"
#include "core/qos.h"
#include "core/reserve.h"

/* A user's expression that takes longer than about a millisecond is an error: the queue waits for it. */
#define EVAL_STEPS_MAX 20000u
/* Attribute names are never forgotten, so somebody who invents new ones for each job is stopped here. */
#define SYMBOLS_MAX 1000000u

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
                c->config.rekey_slice = 300;
        if (!c->config.account_classes_max)
                c->config.account_classes_max = 20000;
        if (!c->config.better_wait_ms)
                c->config.better_wait_ms = 300000;
        if (!c->config.set_wait_ms)
                c->config.set_wait_ms = 30000;
        c->symbols = symbols_new();
        attributes_intern(&c->attr, c->symbols);
        eval_init(&c->eval, 0, config->seed);
        c->eval.steps_max = EVAL_STEPS_MAX;
        c->requests = idmap_new();
        c->uuids = idmap_new();
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
        while (c->first)
                request_free(c, c->first);
        hops_deinit(c);
        data_deinit(c);
        estimates_deinit(c);
        index_free(c->index);
        eta_free(c->eta);
        reserve_deinit(c);
        gang_deinit(c);
        agents_free(c);
        free(c->dirty);
        free(c->changed);
        free(c->finished);
        free(c->significant);
        map_free(c->templates);
        map_free(c->classes);
        idmap_free(c->uuids);
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

void core_clock(struct core *c, int64_t wall_ms, int64_t steady_ms)
{
        c->now_ms = wall_ms;
        c->steady_ms = steady_ms;
        c->eval.now_s = wall_ms / 1000;
}

/* A late attribute is tried with the first member: what is wrong there is wrong everywhere, most likely. */
static int try_late(struct core *c, const struct submission *s, struct err *err)
{
        struct request r = {.id = c->last_id + 1};
        struct buf BUF_CLEANUP text = {.max = SUBMISSION_TEXT_MAX};
        uint64_t first = 0;

        for (size_t i = 0; i < s->part_count; i++) {
                const struct submission_part *from = &s->parts[i];
                struct part p = {.first = (uint32_t)first,
                                 .count = (uint32_t)(from->rows * from->steps),
                                 .rows = (uint32_t)from->rows,
                                 .steps = (uint32_t)from->steps};
                uint32_t start = 0;
                int e;

                first += from->rows * from->steps;
                if (from->rows * from->steps == 0)
                        continue;
                e = template_get(c, from, &p.template, err);
                if (e)
                        return e;
                p.items = (char *)from->items.p;
                p.items_n = (uint32_t)from->items.n;
                p.row_at = &start;
                for (size_t k = 0; k < p.template->late_count && !e; k++) {
                        const struct template_late *l = &p.template->late[k];
                        struct str name = symbols_name(c->symbols, l->name);
                        struct expr *x = NULL;
                        struct err why;

                        buf_reset(&text);
                        e = part_expand(&r, &p, p.first, l->text, &text, &why);
                        if (!e)
                                e = expr_parse(c->symbols, buf_view(&text), &x, &why);
                        if (e)
                                e = err_set(err, -EINVAL, STR_FMT " of job %u: %s", STR_ARG(name), p.first,
                                            why.text);
                        expr_free(x);
                }
                template_unref(c, p.template);
                if (e)
                        return e;
        }
        return 0;
}

static int check(struct core *c, const struct submission *s, struct err *err)
{
        int r = submission_check(s, err);

        if (r)
                return r;
        if (symbols_count(c->symbols) > SYMBOLS_MAX)
                return err_set(err, -E2BIG,
                               "more than %u different attribute names are in use: restart the server",
                               SYMBOLS_MAX);
        for (size_t i = 0; i < s->part_count; i++) {
                struct template *t;

                r = template_get(c, &s->parts[i], &t, err);
                if (r)
                        return r;
                r = gang_check(c, t, s->parts[i].rows * s->parts[i].steps, err);
                template_unref(c, t);
                if (r)
                        return r;
        }
        return try_late(c, s, err);
}

static void hold_on_submit(struct core *c, const struct submission *s, uint64_t id)
{
        struct request *r = request_find(c, id);
        struct event e = {.type = EVENT_HELD,
                          .request = id,
                          .code = CORE_HOLD_SUBMIT,
                          .reason = STR("submitted on hold at user's request")};

        for (size_t i = 0; i < r->part_count; i++) {
                const struct part *p = &r->parts[i];
                bool hold = s->hold;

                if (!hold)
                        eval_boolean(&c->eval, p->template->ad, NULL, c->attr.HoldOnSubmit, &hold);
                if (hold && p->count)
                        set_add_range(&e.members, p->first, (uint64_t)p->first + p->count);
        }
        eval_reset(&c->eval);
        if (set_count(&e.members))
                core_emit(c, &e, NULL);
        event_deinit(&e);
}

int core_submit(struct core *c, const struct submission *s, bool check_only, uint64_t *ret_request,
                bool *ret_existing, struct err *err)
{
        struct request *known = request_by_uuid(c, s->uuid);
        struct event e = {.type = EVENT_SUBMITTED};
        struct buf BUF_CLEANUP record = {0};
        int r;

        *ret_existing = false;
        if (known && !str_eqz(s->owner, request_owner(known)))
                return err_set(err, CORE_FORBIDDEN, "another user has a request with this uuid");
        if (known) {
                *ret_existing = true;
                *ret_request = known->id;
                return 0;
        }
        r = check(c, s, err);
        if (!r)
                r = claim_check(c, s, err);
        if (r)
                return CORE_INVALID;
        *ret_request = c->last_id + 1;
        if (check_only)
                return 0;
        e.request = c->last_id + 1;
        e.value = (int64_t)submission_members(s);
        submission_pack(&record, s);
        c->submitting = s;
        r = core_emit(c, &e, err);
        c->submitting = NULL;
        if (r)
                return r < 0 ? r : CORE_INVALID;
        c->world.keep(c->world.arg, e.request, buf_view(&record));
        hold_on_submit(c, s, e.request);
        return 0;
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
        if (rm)
                add_where(r, cmd->members, is_vacating, &run);
        if (set_count(&run)) {
                n += emit_for(c, cmd, EVENT_VACATING, rm ? JOB_REMOVED : JOB_HELD, &run);
                tell(c, r, &run, rm ? CORE_REMOVE : CORE_HOLD);
        }
        n += emit_for(c, cmd, rm ? EVENT_REMOVED : EVENT_HELD, 0, &wait);
        if (rm) /* what is small is in history at once; the rest comes with the ticks */
                history_file_slice(c);
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
        struct set held = {0};
        uint64_t n = 0;

        switch (cmd->action) {
        case CORE_ACT_HOLD:
        case CORE_ACT_REMOVE: n = act_stop(c, r, cmd); break;
        case CORE_ACT_RELEASE:
                waiting_members(r, cmd->members, true, false, &held);
                n = emit_for(c, cmd, EVENT_RELEASED, 0, &held);
                set_deinit(&held);
                break;
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
