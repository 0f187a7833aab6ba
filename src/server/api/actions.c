/* POST /v1/actions: hold, release, remove, vacate, suspend, resume, priority. */
#include <inttypes.h>

#include "base/clock.h"
#include "classad/eval.h"
#include "server/api/route.h"
#include "server/ids.h"

#define REASON_MAX 4096

static const struct {
        const char *name;
        enum core_action action;
} actions[] = {
        {"hold", CORE_ACT_HOLD},         {"release", CORE_ACT_RELEASE}, {"remove", CORE_ACT_REMOVE},
        {"vacate", CORE_ACT_VACATE},     {"suspend", CORE_ACT_SUSPEND}, {"resume", CORE_ACT_RESUME},
        {"priority", CORE_ACT_PRIORITY},
};

struct failure {
        struct str id, message;
};
struct act {
        json_t *doc;
        struct ids ids;
        enum core_action action;
        struct str reason, constraint;
        int64_t value;
        uint64_t affected;
        struct failure *failures;
        size_t failure_count;
        size_t found;
        uint64_t request; /* with a constraint only: where it goes on */
};

static void state_free(void *arg)
{
        struct act *x = arg;

        ids_deinit(&x->ids);
        free(x->failures);
        json_decref(x->doc);
        free(x);
}

static void write_reply(struct server *s, struct call *c)
{
        struct act *x = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        json_open(&j, '{');
        json_kint(&j, "affected", (int64_t)x->affected);
        json_key(&j, "errors");
        json_open(&j, '[');
        for (size_t i = 0; i < x->failure_count; i++) {
                json_open(&j, '{');
                json_kstr(&j, "id", x->failures[i].id);
                json_kstr(&j, "message", x->failures[i].message);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

static void fail_one(struct call *c, const struct id *id, const char *message)
{
        struct act *x = c->state;
        BUF_CLEANUP struct buf b = {0};

        if (!x->failures)
                x->failures = mem_array(NULL, x->ids.count, sizeof(*x->failures));
        buf_printf(&b, "%" PRIu64, id->request);
        if (id->some) {
                buf_char(&b, '.');
                set_print(&b, &id->members);
        }
        x->failures[x->failure_count++] =
                (struct failure){arena_str(&c->arena, buf_view(&b)), arena_str(&c->arena, str_of(message))};
}

/* Which of the members the constraint holds for. */
static void choose(struct server *s, const struct expr *constraint, const struct id *id, uint64_t count,
                   struct set *to)
{
        struct eval ev;

        eval_init(&ev, clock_wall_ms() / 1000, 0);
        for (uint64_t m = id->some ? set_first(&id->members) : 0; m < count;
             m = id->some ? set_next(&id->members, m + 1) : m + 1) {
                struct ad *ad = core_job_ad(s->core, id->request, (uint32_t)m);
                struct value v;

                if (!ad)
                        continue;
                eval_expr(&ev, constraint, ad, NULL, &v);
                if (value_is_true(&v))
                        set_add(to, (uint32_t)m);
                eval_reset(&ev);
                ad_free(ad);
        }
        eval_deinit(&ev);
}

static void act_on(struct server *s, struct call *c, const struct id *id, const struct expr *constraint)
{
        struct act *x = c->state;
        struct core_command cmd = {
                .action = x->action,
                .request = id->request,
                .members = id->some ? &id->members : NULL,
                .reason = x->reason,
                .value = x->value,
                .owner = c->role == ROLE_USER ? str_of(c->who) : STR_NONE,
        };
        struct core_request r;
        struct set chosen = {0};
        struct err err = {0};
        uint64_t affected = 0;

        if (core_request_get(s->core, id->request, &r) != 0 || !call_may(c, r.owner)) {
                fail_one(c, id, "there is no such request");
                return;
        }
        if (id->some && set_next(&id->members, r.counts.jobs) != SET_END) {
                fail_one(c, id, "there are not so many jobs in this request");
                return;
        }
        x->found++;
        if (constraint) {
                choose(s, constraint, id, r.counts.jobs, &chosen);
                cmd.members = &chosen;
        }
        if (!constraint || set_count(&chosen)) {
                if (core_act(s->core, &cmd, &affected, &err) != 0)
                        fail_one(c, id, err.text);
                x->affected += affected;
        }
        set_deinit(&chosen);
}

/* A constraint alone: every request, one a turn, so that a long queue holds nothing up. */
static void act_all(struct server *s, struct call *c)
{
        struct act *x = c->state;
        struct expr *constraint;
        int64_t end_ns = clock_mono_ns() + 4000000;

        if (expr_parse(core_symbols(s->core), x->constraint, &constraint, NULL) != 0)
                constraint = NULL;
        while (constraint && (x->request = core_request_next(s->core, x->request)) != 0) {
                struct id id = {.request = x->request};
                struct core_request r;

                if (core_request_get(s->core, x->request, &r) == 0 && !r.finished_ms && call_may(c, r.owner))
                        act_on(s, c, &id, constraint);
                if (clock_mono_ns() > end_ns)
                        break;
        }
        expr_free(constraint);
        if (x->request)
                call_core(c, act_all);
        else
                call_front(c, write_reply);
}

static void act(struct server *s, struct call *c)
{
        struct act *x = c->state;
        struct expr *constraint = NULL;
        struct err err = {0};

        c->when = TURN_DURABLE;
        if (x->constraint.n && expr_parse(core_symbols(s->core), x->constraint, &constraint, &err) != 0) {
                call_fail(c, 400, "bad_constraint", "constraint: %s", err.text);
                return;
        }
        if (x->ids.count == 0) {
                expr_free(constraint);
                act_all(s, c);
                return;
        }
        for (size_t i = 0; i < x->ids.count; i++)
                act_on(s, c, &x->ids.items[i], constraint);
        expr_free(constraint);
        if (x->found == 0)
                call_fail(c, 404, "not_found", STR_FMT ": " STR_FMT, STR_ARG(x->failures[0].id),
                          STR_ARG(x->failures[0].message));
        else
                call_front(c, write_reply);
}

static int read_ids(struct act *x, struct err *err)
{
        json_t *list = json_object_get(x->doc, "ids"), *v;
        size_t i;
        int r = 0;

        json_array_foreach(list, i, v) if (r == 0) r =
                json_is_string(v) ? ids_parse(&x->ids, str_of(json_string_value(v)), err)
                                  : err_set(err, -1, "\"ids\" must be a list of strings");
        ids_merge(&x->ids);
        return r;
}

void api_action(struct server *s, struct call *c)
{
        json_t *doc = call_json(c); /* a call that failed is gone, and its state with it */
        struct act *x;
        struct str name;
        struct err err = {0};
        size_t i;

        (void)s;
        if (!doc)
                return;
        x = call_state(c, sizeof(*x), state_free);
        x->doc = doc;
        name = call_json_text(x->doc, "action");
        for (i = 0; i < sizeof(actions) / sizeof(actions[0]) && !str_eqz(name, actions[i].name); i++)
                ;
        if (i == sizeof(actions) / sizeof(actions[0])) {
                call_fail(c, 400, "bad_action", "'" STR_FMT "' is not something that can be done to a job",
                          STR_ARG(name));
                return;
        }
        x->action = actions[i].action;
        x->reason = str_head(call_json_text(x->doc, "reason"), REASON_MAX);
        x->constraint = call_json_text(x->doc, "constraint");
        x->value = json_integer_value(json_object_get(x->doc, "value"));
        if (read_ids(x, &err) != 0)
                call_fail_err(c, 400, "bad_id", &err);
        else if (x->ids.count == 0 && x->constraint.n == 0)
                call_fail(c, 400, "bad_request", "name jobs by \"ids\" or by a \"constraint\"");
        else
                call_core(c, act);
}
