/* The table, and the call: arguments are evaluated into a few values on the stack, or into the arena when
 * there are many. A name that is no function's, and a wrong number of arguments, are errors. The call takes
 * the steps for looking once at all texts among the arguments; a function that does more takes more. */
#include "classad/functions.h"

#include "classad/print_private.h"

#define EAGER(name, min, max) {#name, min, max, false, function_##name, FUNCTION_USES_NOTHING},
#define LAZY(name, min, max)  {#name, min, max, true, function_##name, FUNCTION_USES_NOTHING},
#define TIMED(name, min, max)                                                                                \
        {#name, min, max, false, function_##name, max ? FUNCTION_USES_TIME_ALONE : FUNCTION_USES_TIME},
#define RANDOM(name, min, max) {#name, min, max, false, function_##name, FUNCTION_USES_RANDOM},
const struct function functions[] = {FUNCTION_TABLE(EAGER, LAZY, TIMED, RANDOM)};
const unsigned functions_count = sizeof(functions) / sizeof(*functions);

#define ARGS_ON_STACK 6

const struct function *function_find(symbol name)
{
        static const struct function current_time = {"currentTime",     0, 0, false, function_time,
                                                     FUNCTION_USES_TIME};

        if (name >= SYM_FIRST_FUNCTION && name < SYM_FIRST_FUNCTION + functions_count)
                return &functions[name - SYM_FIRST_FUNCTION];
        return name == SYM_CURRENT_TIME ? &current_time : NULL;
}

/* Apart, so that calls with few arguments, which nest, use little stack. */
static __attribute__((noinline)) void call_eager(struct call *c, const struct function *f, struct value *args,
                                                 struct value *ret)
{
        for (unsigned i = 0; i < c->argc; i++) {
                run_node(c->run, node_wide_kid(c->nd, i), &args[i]);
                if (args[i].type == VALUE_STRING && !run_bytes(c->run, args[i].string.n))
                        break;
        }
        c->args = args;
        *ret = value_error();
        if (!c->run->ev->limit_hit)
                f->fn(c, ret);
}

void function_call(struct run *r, const struct node *nd, struct value *ret)
{
        const struct function *f = function_find(nd->a);
        struct value few[ARGS_ON_STACK], *args = few;
        struct call c = {.run = r, .nd = nd, .argc = nd->n};

        *ret = value_error();
        if (!f || nd->n < f->args_min || (f->args_max != ANY_NUMBER && nd->n > f->args_max))
                return;
        if (f->lazy) {
                f->fn(&c, ret);
                return;
        }
        if (nd->n > ARGS_ON_STACK) {
                args = run_alloc(r, nd->n * sizeof(*args));
                if (!args)
                        return;
        }
        call_eager(&c, f, args, ret);
}

void call_eval(const struct call *c, unsigned i, struct value *ret)
{
        run_node(c->run, node_wide_kid(c->nd, i), ret);
}

bool call_strict(const struct call *c, struct value *ret)
{
        bool undefined = false;

        for (unsigned i = 0; i < c->argc; i++) {
                if (c->args[i].type == VALUE_ERROR) {
                        *ret = value_error();
                        return true;
                }
                undefined = undefined || c->args[i].type == VALUE_UNDEFINED;
        }
        if (undefined)
                *ret = value_undefined();
        return undefined;
}

bool call_undefined(const struct call *c, struct value *ret)
{
        for (unsigned i = 0; i < c->argc; i++)
                if (c->args[i].type == VALUE_UNDEFINED) {
                        *ret = value_undefined();
                        return true;
                }
        return call_strict(c, ret);
}

bool run_value_text(struct run *r, const struct value *v, struct str *ret)
{
        struct buf out BUF_CLEANUP = {.max = run_print_max(r)};
        size_t attributes = 0;
        struct value text;

        if (v->type == VALUE_STRING) {
                *ret = v->string;
                return true;
        }
        for (const struct ad *ad = v->type == VALUE_AD ? v->ad : NULL; ad; ad = ad->parent)
                attributes += ad->count;
        if (!run_steps(r, attributes / 8))
                return false;
        if (v->type == VALUE_ABSTIME)
                value_time_text(&out, v);
        else if (v->type == VALUE_RELTIME)
                value_interval_text(&out, v->real);
        else
                value_print(&out, v);
        if (!run_printed(r, &out, &text))
                return false;
        *ret = text.string;
        return true;
}

bool call_text(const struct call *c, unsigned i, struct str *ret_text, struct value *ret)
{
        const struct value *v = &c->args[i];

        if (v->type == VALUE_UNDEFINED || v->type == VALUE_ERROR) {
                *ret = *v;
                return false;
        }
        if (run_value_text(c->run, v, ret_text))
                return true;
        *ret = value_error();
        return false;
}
