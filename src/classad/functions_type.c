/* Functions about types and conversions, and those that take an expression rather than its value. */
#include <math.h>
#include <stdlib.h>

#include "classad/functions.h"
#include "classad/operators.h"
#include "classad/parse.h"
#include "classad/print.h"

static void is_type(const struct call *c, enum value_type type, struct value *ret)
{
        struct value v;

        call_eval(c, 0, &v);
        *ret = value_boolean(v.type == type);
}

#define IS_TYPE(name, type)                                                                                  \
        void function_##name(const struct call *c, struct value *ret)                                        \
        {                                                                                                    \
                is_type(c, type, ret);                                                                       \
        }
IS_TYPE(isUndefined, VALUE_UNDEFINED)
IS_TYPE(isError, VALUE_ERROR)
IS_TYPE(isString, VALUE_STRING)
IS_TYPE(isInteger, VALUE_INTEGER)
IS_TYPE(isReal, VALUE_REAL)
IS_TYPE(isList, VALUE_LIST)
IS_TYPE(isClassAd, VALUE_AD)
IS_TYPE(isBoolean, VALUE_BOOLEAN)
IS_TYPE(isAbstime, VALUE_ABSTIME)
IS_TYPE(isReltime, VALUE_RELTIME)

/* The number at the beginning of a text, as strtod reads it; false when there is none. */
static bool text_number(struct str s, double *ret_real, int64_t *ret_integer)
{
        char z[64], *end, *end_integer;
        double d;

        s = str_head(str_trim_left(s), sizeof(z) - 1);
        if (s.n)
                memcpy(z, s.p, s.n);
        z[s.n] = '\0';
        d = strtod(z, &end);
        if (end == z)
                return false;
        *ret_real = d;
        *ret_integer = strtoll(z, &end_integer, 10);
        if (end_integer == end)
                return true;
        if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0))
                return false;
        *ret_integer = (int64_t)d;
        return true;
}

bool value_convert_real(const struct value *v, double *ret)
{
        int64_t integer;

        switch (v->type) {
        case VALUE_RELTIME: *ret = v->real; return true;
        case VALUE_ABSTIME: *ret = (double)v->integer; return true;
        case VALUE_STRING:
                if (str_ieq(v->string, STR("INF")) || str_ieq(v->string, STR("-INF"))) {
                        *ret = v->string.p[0] == '-' ? -INFINITY : INFINITY;
                        return true;
                }
                if (str_ieq(v->string, STR("NaN"))) {
                        *ret = NAN;
                        return true;
                }
                return text_number(v->string, ret, &integer);
        default: return value_to_double(v, ret);
        }
}

bool value_convert_integer(const struct value *v, int64_t *ret)
{
        double real;

        switch (v->type) {
        case VALUE_ABSTIME: *ret = v->integer; return true;
        case VALUE_RELTIME:
                if (!(fabs(v->real) < 9e18))
                        return false;
                *ret = (int64_t)v->real;
                return true;
        case VALUE_STRING: return text_number(v->string, &real, ret);
        default: return value_to_integer(v, ret);
        }
}

void function_int(const struct call *c, struct value *ret)
{
        int64_t i;

        if (!call_strict(c, ret) && value_convert_integer(&c->args[0], &i))
                *ret = value_integer(i);
}

void function_real(const struct call *c, struct value *ret)
{
        double d;

        if (!call_strict(c, ret) && value_convert_real(&c->args[0], &d))
                *ret = value_real(d);
}

void function_string(const struct call *c, struct value *ret)
{
        struct str s;

        if (call_text(c, 0, &s, ret))
                *ret = value_string(s);
}

void function_bool(const struct call *c, struct value *ret)
{
        const struct value *v = &c->args[0];
        double d;

        if (call_strict(c, ret))
                return;
        if (v->type == VALUE_STRING) {
                bool yes = str_ieq(v->string, STR("true"));

                *ret = yes || str_ieq(v->string, STR("false")) ? value_boolean(yes) : value_undefined();
        } else if (v->type == VALUE_RELTIME) {
                *ret = value_boolean(v->real <= -1 || v->real >= 1);
        } else if (value_to_double(v, &d)) {
                *ret = value_boolean(d != 0);
        }
}

void function_ifThenElse(const struct call *c, struct value *ret)
{
        struct value v;

        call_eval(c, 0, &v);
        switch (operator_truth(&v)) {
        case TRUTH_TRUE: call_eval(c, 1, ret); break;
        case TRUTH_FALSE: call_eval(c, 2, ret); break;
        case TRUTH_UNDEFINED: *ret = value_undefined(); break;
        default: *ret = value_error(); break;
        }
}

void function_debug(const struct call *c, struct value *ret)
{
        *ret = c->args[0];
}

#define EVAL_NAMES_MAX 10000 /* that a table of symbols may learn from eval(): symbols are never freed */

/* The text is compiled, and its code kept in the arena as long as the values of this evaluation. A name that
 * no ad has is of no use, so texts with ever new names lose only their own. */
void function_eval(const struct call *c, struct value *ret)
{
        struct symbols *symbols = (struct symbols *)c->run->symbols;
        uint32_t root, before;
        struct str text;
        char *copy;
        int r;

        if (!call_text(c, 0, &text, ret)) { /* an undefined value is no expression */
                *ret = value_error();
                return;
        }
        if (!symbols || !run_steps(c->run, text.n / 8 + 1))
                return;
        before = symbols_count(symbols);
        symbols->frozen = symbols->from_eval >= EVAL_NAMES_MAX;
        r = parse_expression(symbols, text, true, &root, NULL);
        symbols->frozen = false;
        symbols->from_eval += symbols_count(symbols) - before;
        if (r != 0 || !(copy = run_alloc(c->run, symbols->code.n)))
                return;
        memcpy(copy, symbols->code.p, symbols->code.n);
        run_node(c->run, (const struct node *)(const void *)(copy + root), ret);
}

/* Gives the expression of the attribute that the argument names; false: the argument is no name. */
static bool named(const struct call *c, const struct node **ret)
{
        const struct node *nd = call_arg_node(c, 0);
        const struct ad *ad = c->run->my;

        if (nd->op == OP_TARGET)
                ad = c->run->target;
        else if (nd->op != OP_NAME && nd->op != OP_MY)
                return false;
        *ret = NULL;
        for (; ad && !*ret; ad = ad->enclosing)
                *ret = ad_get(ad, nd->a);
        return true;
}

void function_unparse(const struct call *c, struct value *ret)
{
        struct buf out BUF_CLEANUP = {.max = run_print_max(c->run)};
        const struct node *nd;

        if (!named(c, &nd))
                return;
        if (nd)
                expr_print(&out, (const struct expr *)nd, c->run->symbols);
        run_printed(c->run, &out, ret);
}

struct unresolved {
        struct str *names;
        size_t n, cap;
        const struct symbols *symbols;
};

static void unresolved_name(void *arg, symbol name, bool target)
{
        struct unresolved *u = arg;

        if (!target)
                return;
        MEM_GROW(u->names, u->cap, u->n + 1);
        u->names[u->n++] = symbols_name(u->symbols, name);
}

static int compare_names(const void *a, const void *b)
{
        return str_icmp(*(const struct str *)a, *(const struct str *)b);
}

/* Sets *ret to whether one of the names matches the pattern. */
static void any_name(const struct call *c, const struct unresolved *u, struct value *ret)
{
        struct value pattern;
        struct regexp *x;
        int r = 0;

        call_eval(c, 1, &pattern);
        if (pattern.type != VALUE_STRING || !(x = regexp_new(c->run, pattern.string, STR("i"))))
                return;
        for (size_t i = 0; i < u->n && r == 0; i++)
                r = regexp_search(x, u->names[i]);
        if (r >= 0)
                *ret = value_boolean(r > 0);
        regexp_free(x);
}

void function_unresolved(const struct call *c, struct value *ret)
{
        struct unresolved u = {.symbols = c->run->symbols};
        struct buf out BUF_CLEANUP = {.max = run_print_max(c->run)};
        uint32_t left, nodes;
        const struct node *nd;
        struct expr_uses uses;

        /* the walk has a table of the names */
        if (!named(c, &nd) ||
            !run_steps(c->run, 4 + (c->run->symbols ? symbols_count(c->run->symbols) / RUN_TEXT : 0)))
                return;
        nodes = left = c->run->ev->steps_max - c->run->ev->steps;
        *ret = value_undefined();
        if (!nd)
                return;
        expr_references_within((const struct expr *)nd, run_root(c->run->my), unresolved_name, &u, &uses,
                               &nodes);
        *ret = value_error();
        if (nodes == 0)
                run_limit(c->run, "steps");
        if (!run_steps(c->run, left - nodes))
                u.n = 0;
        if (u.n)
                qsort(u.names, u.n, sizeof(*u.names), compare_names);
        for (size_t i = 0; c->argc == 1 && i < u.n; i++) {
                buf_addz(&out, i ? "," : "");
                buf_str(&out, u.names[i]);
        }
        if (c->argc == 1)
                run_printed(c->run, &out, ret);
        else
                any_name(c, &u, ret);
        free(u.names);
}

/* Evaluates the first argument in the scope of ad i of the second. If the argument is the name of an
 * attribute, its expression is evaluated there: MY.RequireGPUs of a job asks for the Capability of each
 * device. An ad that belongs to the other one sees this one as its target. */
static bool each_context(const struct call *c, struct value *contexts, uint32_t i, struct value *ret)
{
        const struct ad *target = c->run->target, *was = c->run->context;
        const struct node *nd = NULL;
        struct value member;

        run_item(c->run, contexts->list, i, &member);
        *ret = member.type == VALUE_UNDEFINED ? member : value_error();
        if (member.type != VALUE_AD)
                return false;
        if (run_root(member.ad) == target)
                target = run_root(c->run->my);
        if (!named(c, &nd))
                nd = NULL;
        c->run->context = member.ad;
        if (nd)
                run_attribute(c->run, nd, member.ad, target, ret);
        else
                run_node_in(c->run, call_arg_node(c, 0), member.ad, target, ret);
        c->run->context = was;
        return true;
}

void function_evalInEachContext(const struct call *c, struct value *ret)
{
        struct value contexts, *items;
        struct value_list *list;

        call_eval(c, 1, &contexts);
        if (contexts.type == VALUE_UNDEFINED)
                *ret = contexts;
        if (contexts.type != VALUE_LIST || !(list = run_list(c->run, contexts.list->n, &items)))
                return;
        for (uint32_t i = 0; i < list->n; i++)
                each_context(c, &contexts, i, &items[i]);
        *ret = (struct value){.type = VALUE_LIST, .list = list};
}

void function_countMatches(const struct call *c, struct value *ret)
{
        struct value contexts, v;
        int64_t count = 0;

        call_eval(c, 1, &contexts);
        if (contexts.type != VALUE_LIST && contexts.type != VALUE_UNDEFINED)
                return;
        for (uint32_t i = 0; contexts.type == VALUE_LIST && i < contexts.list->n && !c->run->ev->limit_hit;
             i++)
                if (each_context(c, &contexts, i, &v) && value_is_true(&v))
                        count++;
        *ret = value_integer(count);
}
