#include "server/loop/expressions.h"

#include <inttypes.h>

#include "base/system/clock.h"
#include "core/core.h"
#include "core/query.h"

void expressions_eval_init(struct eval *ev, int64_t now_s)
{
        eval_init(ev, now_s, 0);
        ev->steps_max = CORE_EVAL_STEPS_MAX;
        ev->bytes_max = CORE_EVAL_BYTES_MAX;
        ev->clock_ns = expressions_clock_ns;
}

void expressions_read_init(struct eval *ev, int64_t now_s)
{
        expressions_eval_init(ev, now_s);
        ev->steps_max = EXPRESSIONS_READ_STEPS;
        eval_share(ev);
}

void expressions_read_next(struct eval *ev)
{
        eval_share_end(ev);
        eval_share(ev);
}

uint64_t expressions_clock_ns(void)
{
        return (uint64_t)clock_thread_ns();
}

int constraint_begin(struct constraint *x, struct symbols *symbols, struct str text, struct err *err)
{
        struct symbols_use *before;
        int r = 0;

        expressions_eval_init(&x->eval, clock_wall_ms() / 1000);
        x->request = 0;
        x->template_ad = NULL;
        if (text.n == 0)
                return 0;
        x->names = symbols_use_new(symbols, STR_NONE);
        symbols_use_limit(x->names, CONSTRAINT_NAMES_MAX);
        before = symbols_use_set(symbols, x->names);
        r = expr_parse(symbols, text, &x->expr, err);
        symbols_use_set(symbols, before);
        if (r != 0)
                constraint_end(x);
        return r;
}

void constraint_end(struct constraint *x)
{
        expr_free(x->expr);
        x->expr = NULL;
        symbols_use_free(x->names);
        x->names = NULL;
        eval_deinit(&x->eval);
}

void constraint_deinit(struct constraint *x)
{
        constraint_end(x);
        free(x->error);
}

static void fail_constraint(struct constraint *x, uint64_t request, uint32_t member)
{
        const char *which = x->eval.limit_hit;
        BUF_CLEANUP struct buf text = {0};

        if (x->eval.overruns == 0)
                buf_printf(&text,
                           "the constraint takes too long: past the limit of %u steps, and %u for each job, "
                           "after "
                           "%" PRIu64 " jobs",
                           CONSTRAINT_STEPS_MAX, CONSTRAINT_STEPS_PER_JOB, x->jobs);
        else if (strcmp(which, "steps") == 0)
                buf_printf(&text,
                           "the constraint takes too long: past the limit of %u steps for job %" PRIu64 ".%u",
                           CORE_EVAL_STEPS_MAX, request, member);
        else if (strcmp(which, "time") == 0)
                buf_printf(&text,
                           "the constraint takes too long: past the limit of 50 ms for job %" PRIu64 ".%u",
                           request, member);
        else
                buf_printf(&text, "the constraint is past the limit of %s for job %" PRIu64 ".%u",
                           strcmp(which, "depth") == 0 ? "nested references" : "memory", request, member);
        x->error = str_dupz(buf_view(&text));
}

bool constraint_holds(struct constraint *x, const struct ad *ad, uint64_t request, uint32_t member)
{
        uint64_t before = x->eval.steps_all;
        struct value v;
        bool yes;

        if (!x->expr)
                return true;
        eval_expr(&x->eval, x->expr, ad, NULL, &v);
        yes = value_is_true(&v);
        eval_reset(&x->eval);
        x->steps += x->eval.steps_all - before;
        x->jobs++;
        if (x->eval.overruns || x->steps > CONSTRAINT_STEPS_MAX + x->jobs * CONSTRAINT_STEPS_PER_JOB)
                fail_constraint(x, request, member);
        return yes && !x->error;
}

struct differing {
        const struct core *core;
        const struct ad *ad;
        bool found;
};

static void on_reference(void *arg, symbol name, bool target)
{
        struct differing *d = arg;

        (void)target; /* a bare name that this job's ad lacks may be an attribute of another job's ad */
        d->found |= core_job_differs(d->core, d->ad, name);
}

static bool may_differ(const struct constraint *x, const struct core *core, const struct ad *ad)
{
        struct differing d = {.core = core, .ad = ad};
        struct expr_uses uses = {0};

        expr_references(x->expr, ad, on_reference, &d, &uses);
        return d.found || uses.uses_more || uses.uses_random;
}

struct reach {
        struct core *core;
        uint64_t request;
        uint32_t member;
        enum core_scope scope;
};

static void on_name(void *arg, symbol name, bool target)
{
        struct reach *r = arg;
        enum core_scope scope = core_job_scope(r->core, r->request, r->member, name);

        (void)target;
        if (scope > r->scope)
                r->scope = scope;
}

/* Returns what of this job, which has that template, the constraint depends on. */
static enum core_scope constraint_scope(const struct constraint *x, struct core *core, uint64_t request,
                                        uint32_t member, const struct ad *template_ad)
{
        struct reach r = {.core = core, .request = request, .member = member};
        struct expr_uses uses = {0};

        expr_references(x->expr, template_ad, on_name, &r, &uses);
        return uses.uses_more || uses.uses_random ? CORE_SCOPE_JOB : r.scope;
}

/* Returns whether the result is known without a look at the job, or from its template alone. */
static bool shared_result(struct constraint *x, struct core *core, uint32_t member,
                          const struct core_job_kind *k, bool *ret_holds)
{
        if (k->template_ad != x->template_ad) {
                x->template_ad = k->template_ad;
                x->scope = constraint_scope(x, core, k->request, member, k->template_ad);
                x->shared_known = false;
        } else if (x->scope == CORE_SCOPE_STATE && k->state != x->state) {
                x->shared_known = false;
        }
        if (x->shared_known) {
                x->jobs++;
        } else if (x->scope == CORE_SCOPE_TEMPLATE) {
                x->shared = constraint_holds(x, k->template_ad, k->request, member);
                x->shared_known = true;
        }
        *ret_holds = x->shared;
        return x->shared_known;
}

bool constraint_holds_job(struct constraint *x, struct core *core, uint64_t request, uint32_t member,
                          struct ad **ret_ad)
{
        struct core_job_kind k;
        bool known, second, holds;

        *ret_ad = NULL;
        if (!x->expr)
                return true;
        known = core_job_kind(core, request, member, &k);
        if (known && k.template_ad && shared_result(x, core, member, &k, &holds))
                return holds;
        second = known && x->request == request && x->part == k.part && x->state == k.state;
        if (second && x->found >= KIND_FAILS) {
                x->jobs++;
                return x->found == KIND_HOLDS;
        }
        *ret_ad = core_job_ad(core, request, member);
        if (!*ret_ad)
                return false;
        holds = constraint_holds(x, *ret_ad, request, member);
        if (second && x->found == KIND_SEEN) {
                x->found = may_differ(x, core, *ret_ad) ? KIND_DIFFERS : holds ? KIND_HOLDS : KIND_FAILS;
        } else if (known && !second) {
                x->request = request;
                x->part = k.part;
                x->state = k.state;
                x->found = KIND_SEEN;
        }
        if (known && k.template_ad && x->scope == CORE_SCOPE_STATE) {
                x->shared = holds;
                x->shared_known = true;
        }
        return holds;
}
