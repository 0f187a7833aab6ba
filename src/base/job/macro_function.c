/* A function resolves its arguments; if one is late, the call is written out again with the known ones filled
 * in. A call that stays is split at its commas again later, so a filled-in text must not bring commas of its
 * own.
 */
#include "base/job/macro_function.h"

#include <errno.h>
#include <stdio.h>

#include "base/job/arith.h"
#include "base/job/path_parts.h"

struct call {
        struct macro_run *run;
        struct str name, body;
        struct buf *out;
        bool *late;
};

static int fail_call(struct call *c, const char *what, struct str shown)
{
        return err_set(c->run->err, -EINVAL, "$" STR_FMT "(" STR_FMT "): %s%s" STR_FMT "%s", STR_ARG(c->name),
                       STR_ARG(str_head(c->body, 80)), what, shown.p ? " '" : "",
                       STR_ARG(str_head(shown, 80)), shown.p ? "'" : "");
}

/* Takes the text before the next comma outside parentheses, as str_cut does. */
static bool cut_argument(struct str *rest, struct str *ret)
{
        unsigned depth = 0;

        if (!rest->p)
                return false;
        for (size_t i = 0; i < rest->n; i++) {
                char c = rest->p[i];

                if (c == '(')
                        depth++;
                else if (c == ')' && depth)
                        depth--;
                else if (c == ',' && !depth) {
                        *ret = str_head(*rest, i);
                        *rest = str_skip(*rest, i + 1);
                        return true;
                }
        }
        *ret = *rest;
        *rest = STR_NONE;
        return true;
}

static bool has_comma(struct str s)
{
        struct str first;

        return cut_argument(&s, &first) && s.p;
}

/* Gives an argument's value: that of the macro of that name, or else the text itself, expanded. */
static int argument(struct call *c, struct str text, struct buf *value, bool *late)
{
        enum macro_found found;
        int rc;

        text = str_trim(text);
        if (!macro_is_name(text))
                return macro_deeper(c->run, text, value, late);
        rc = macro_value(c->run, text, value, late, &found);
        if (found == MACRO_LATE)
                *late = true;
        if (found == MACRO_LATE || found == MACRO_UNKNOWN)
                buf_str(value, text);
        return rc;
}

/* Writes the call again, to be made later. rest: NULL when there are no further arguments. */
static int keep_call(struct call *c, struct str first, const struct str *rest)
{
        if (rest && has_comma(first))
                return fail_call(
                        c, "a value with a comma and a value that differs from job to job can't be combined:",
                        first);
        *c->late = true;
        buf_char(c->out, '$');
        buf_str(c->out, c->name);
        buf_char(c->out, '(');
        buf_str(c->out, first);
        if (rest) {
                buf_char(c->out, ',');
                buf_str(c->out, *rest);
        }
        buf_char(c->out, ')');
        return 0;
}

static int to_integer(struct call *c, struct str text, int64_t *ret)
{
        struct arith v;
        struct err err = {{0}};

        if (arith_eval(text, &v, &err))
                return fail_call(c, err.text, STR_NONE);
        if (v.is_real && !(v.real > -9.2e18 && v.real < 9.2e18))
                return fail_call(c, "too large:", text);
        *ret = v.is_real ? (int64_t)v.real : v.integer;
        return 0;
}

/* The one conversion of a printf format for a value; anything else could read what isn't there. `%%` is
 * allowed. Gives the format with the length that the value has ("ll" for whole numbers). */
static int check_format(struct call *c, struct str f, const char *conversions, const char *length,
                        struct buf *ret)
{
        bool seen = false;

        for (size_t i = 0; i < f.n; i++) {
                size_t digits = 0, flags = 0;

                buf_char(ret, f.p[i]);
                if (f.p[i] != '%')
                        continue;
                if (i + 1 < f.n && f.p[i + 1] == '%') {
                        buf_char(ret, f.p[++i]);
                        continue;
                }
                while (++i < f.n && memchr("-+ #0123456789.", f.p[i], 15) && flags++ < 8 && digits < 4) {
                        digits = f.p[i] >= '0' && f.p[i] <= '9' ? digits + 1 : 0;
                        buf_char(ret, f.p[i]);
                }
                while (i < f.n && f.p[i] == 'l')
                        i++;
                if (i >= f.n || !strchr(conversions, f.p[i]) || seen)
                        return fail_call(c, "not a format for one value:", f);
                seen = true;
                buf_addz(ret, length);
                buf_char(ret, f.p[i]);
        }
        return seen ? 0 : fail_call(c, "the format has no % for the value:", f);
}

static int print_number(struct call *c, struct str format, const struct arith *v, bool whole)
{
        BUF_CLEANUP struct buf checked = {.max = 4096};
        int rc = 0;

        if (memchr(format.p, '\0', format.n))
                return fail_call(c, "a NUL byte is no part of a format", STR_NONE);
        rc = check_format(c, format, whole ? "diuxXo" : "eEfFgG", whole ? "ll" : "", &checked);
        if (!rc && buf_check(&checked))
                rc = fail_call(c, "the format is too long", STR_NONE);
        if (rc)
                return rc;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        if (whole)
                buf_printf(c->out, buf_z(&checked), (long long)v->integer);
        else
                buf_printf(c->out, buf_z(&checked), v->real);
#pragma GCC diagnostic pop
        return 0;
}

/* $INT(x[,format]) and $REAL(x[,format]). The format is all behind the comma, white space and commas too. */
static int macro_function_number(struct call *c, bool whole)
{
        BUF_CLEANUP struct buf value = {.max = MACRO_TEXT_MAX}, format = {.max = MACRO_TEXT_MAX};
        struct str rest = c->body, first = STR_NONE, f;
        struct arith v;
        struct err err = {{0}};
        bool late = false;
        int rc;

        cut_argument(&rest, &first);
        rc = argument(c, first, &value, &late);
        if (!rc && rest.p)
                rc = macro_deeper(c->run, rest, &format, &late);
        if (rc)
                return rc;
        f = buf_view(&format);
        if (late)
                return keep_call(c, buf_view(&value), rest.p ? &f : NULL);
        if (arith_eval(buf_view(&value), &v, &err))
                return fail_call(c, err.text, STR_NONE);
        if (whole && v.is_real)
                rc = to_integer(c, buf_view(&value), &v.integer);
        if (rc)
                return rc;
        if (rest.p) {
                size_t start = c->out->n;

                rc = print_number(c, f, &v, whole);
                if (!rc && !whole && str_find(str_skip(buf_view(c->out), start), '.') < 0)
                        buf_addz(c->out, ".0"); /* so that it reads as a real */
        } else if (whole) {
                buf_printf(c->out, "%lld", (long long)v.integer);
        } else {
                buf_printf(c->out, "%.16G", v.real);
        }
        return rc;
}

static int call_int(struct call *c)
{
        return macro_function_number(c, true);
}

static int call_real(struct call *c)
{
        return macro_function_number(c, false);
}

static int call_substr(struct call *c)
{
        BUF_CLEANUP struct buf value = {.max = MACRO_TEXT_MAX}, tail = {.max = MACRO_TEXT_MAX};
        struct str rest = c->body, first = STR_NONE, from, length, t;
        int64_t start = 0, count = INT32_MAX, size;
        bool late = false;
        int rc;

        cut_argument(&rest, &first);
        if (!rest.p)
                return fail_call(c,
                                 "it needs a place to start: $SUBSTR(name,from) or $SUBSTR(name,from,length)",
                                 STR_NONE);
        rc = argument(c, first, &value, &late);
        if (!rc && cut_argument(&rest, &from))
                rc = argument(c, from, &tail, &late);
        if (!rc && rest.p && cut_argument(&rest, &length)) {
                buf_char(&tail, ',');
                rc = argument(c, length, &tail, &late);
        }
        if (!rc && rest.p)
                rc = fail_call(c, "too many arguments", STR_NONE);
        t = buf_view(&tail);
        if (rc)
                return rc;
        if (late)
                return keep_call(c, buf_view(&value), &t);
        str_cut(&t, ',', &from);
        rc = to_integer(c, from, &start);
        if (!rc && t.p)
                rc = to_integer(c, t, &count);
        if (rc)
                return rc;
        size = (int64_t)value.n;
        start = start < -size ? 0 : start < 0 ? start + size : start > size ? size : start;
        size -= start;
        count = count < -size ? 0 : count < 0 ? count + size : count > size ? size : count;
        buf_add(c->out, value.p + start, (size_t)count);
        return 0;
}

/* Gives the items of a list argument, which has the items themselves, or the name of a macro that holds them.
 */
static int list_argument(struct call *c, struct str text, struct buf *ret, bool *late)
{
        return has_comma(text) ? macro_deeper(c->run, text, ret, late) : argument(c, text, ret, late);
}

static int nth_item(struct call *c, struct str list, uint64_t n)
{
        struct str item;

        for (uint64_t i = 0; cut_argument(&list, &item); i++) {
                if (i == n) {
                        buf_str(c->out, str_trim(item));
                        return 0;
                }
        }
        return fail_call(c, "there are not that many items in the list", STR_NONE);
}

static int call_choice(struct call *c)
{
        BUF_CLEANUP struct buf index = {.max = MACRO_TEXT_MAX}, list = {.max = MACRO_TEXT_MAX};
        struct str rest = c->body, first = STR_NONE, l;
        bool late = false;
        int64_t n = 0;
        int rc;

        cut_argument(&rest, &first);
        if (!rest.p)
                return fail_call(c, "it needs a list: $CHOICE(index,a,b,…) or $CHOICE(index,name)", STR_NONE);
        rc = argument(c, first, &index, &late);
        if (!rc)
                rc = list_argument(c, rest, &list, &late);
        l = buf_view(&list);
        if (rc)
                return rc;
        if (late)
                return keep_call(c, buf_view(&index), &l);
        rc = to_integer(c, buf_view(&index), &n);
        if (!rc && n < 0)
                rc = fail_call(c, "the index is negative", STR_NONE);
        return rc ? rc : nth_item(c, l, (uint64_t)n);
}

static uint64_t mixed(uint64_t x) /* the end of splitmix64 */
{
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
}

static uint64_t next_random(struct call *c)
{
        return mixed(*c->run->world->random += 0x9e3779b97f4a7c15u);
}

/* A choice for each job: the call is written again under the name of its late form, with a seed before its
 * arguments. The seed says which request and which place in its text it is, and is mixed with the job's
 * number; so everybody who expands the text for a job, at any time, makes the same choice. */
static int leave_to_each_job(struct call *c, const char *late_form, struct str arguments)
{
        *c->late = true;
        buf_printf(c->out, "$%s(%llu,", late_form, (unsigned long long)next_random(c));
        buf_str(c->out, arguments);
        buf_char(c->out, ')');
        return 0;
}

static int call_random_choice(struct call *c);
static int call_random_integer(struct call *c);

/* $JOB_CHOICE(seed,a,b,…) and $JOB_INTEGER(seed,min,max[,step]). */
static int job_choice(struct call *c, int (*choose)(struct call *c))
{
        struct str rest = c->body, seed = STR_NONE;
        BUF_CLEANUP struct buf number = {.max = 64};
        struct macro_world world = *c->run->world;
        struct macro_run run;
        struct call of_job;
        enum macro_found found;
        uint64_t state, job;
        bool late = false;
        int rc;

        cut_argument(&rest, &seed);
        if (str_to_u64(seed, &state) || !rest.p)
                return fail_call(c, "it has the form $JOB_…(seed,…)", STR_NONE);
        rc = macro_value(c->run, STR("Process"), &number, &late, &found);
        if (rc)
                return rc;
        if (found == MACRO_LATE || late)
                return keep_call(c, c->body, NULL);
        if (str_to_u64(buf_view(&number), &job))
                return fail_call(c, "there is no job to choose for", STR_NONE);
        state = mixed(state ^ mixed(job + 1));
        run = *c->run;
        world.random = &state;
        world.random_late = false;
        run.world = &world;
        of_job = (struct call){&run, c->name, rest, c->out, c->late};
        rc = choose(&of_job);
        c->run->saw_dollar |= run.saw_dollar;
        c->run->work = run.work;
        return rc;
}

static int call_job_choice(struct call *c)
{
        return job_choice(c, call_random_choice);
}

static int call_job_integer(struct call *c)
{
        return job_choice(c, call_random_integer);
}

static int call_random_choice(struct call *c)
{
        BUF_CLEANUP struct buf list = {.max = MACRO_TEXT_MAX};
        struct str rest, item;
        uint64_t count = 0;
        bool late = false;
        int rc;

        if (!c->run->world->random)
                return fail_call(c, "random choices can't be made here", STR_NONE);
        rc = list_argument(c, c->body, &list, &late);
        if (rc)
                return rc;
        if (str_trim(buf_view(&list)).n == 0)
                return fail_call(c, "there is nothing to choose from", STR_NONE);
        if (c->run->world->random_late)
                return leave_to_each_job(c, "JOB_CHOICE", buf_view(&list));
        *c->late |= late;
        for (rest = buf_view(&list); cut_argument(&rest, &item);)
                count++;
        return nth_item(c, buf_view(&list), next_random(c) % count);
}

static int call_random_integer(struct call *c)
{
        BUF_CLEANUP struct buf text = {.max = MACRO_TEXT_MAX};
        int64_t v[3] = {0, 0, 1}, range;
        struct str rest, one;
        bool late = false;
        unsigned n = 0;
        int rc = macro_deeper(c->run, c->body, &text, &late);

        if (rc)
                return rc;
        if (!c->run->world->random)
                return fail_call(c, "random choices can't be made here", STR_NONE);
        if (late && c->run->world->random_late)
                return leave_to_each_job(c, "JOB_INTEGER", buf_view(&text));
        if (late)
                return fail_call(c, "its limits can't differ from job to job", STR_NONE);
        for (rest = buf_view(&text); n < 3 && !rc && cut_argument(&rest, &one);)
                rc = to_integer(c, one, &v[n++]);
        if (rc)
                return rc;
        if (n < 2 || rest.p)
                return fail_call(c, "it has the form $RANDOM_INTEGER(min,max[,step])", STR_NONE);
        if (v[1] < v[0] || v[2] < 1 || __builtin_sub_overflow(v[1], v[0], &range))
                return fail_call(c, "it needs min <= max and a step of at least 1", STR_NONE);
        if (c->run->world->random_late)
                return leave_to_each_job(c, "JOB_INTEGER", buf_view(&text));
        range = range / v[2];
        buf_printf(c->out, "%lld",
                   (long long)(v[0] + (int64_t)(next_random(c) % ((uint64_t)range + 1)) * v[2]));
        return 0;
}

static int call_env(struct call *c)
{
        BUF_CLEANUP struct buf text = {.max = MACRO_TEXT_MAX};
        struct str rest, name = STR_NONE;
        MEM_CLEANUP char *z = NULL;
        const char *value;
        bool late = false;
        int rc = macro_deeper(c->run, c->body, &text, &late);

        if (rc)
                return rc;
        if (late)
                return keep_call(c, buf_view(&text), NULL);
        if (!c->run->world->getenv)
                return fail_call(c, "the environment can't be asked here", STR_NONE);
        rest = buf_view(&text);
        str_cut(&rest, ':', &name);
        z = str_dupz(str_trim(name));
        value = c->run->world->getenv(c->run->world->arg, z);
        if (value)
                macro_final(c->run, str_of(value), c->out);
        else if (rest.p)
                buf_str(c->out, rest);
        else
                buf_addz(c->out, "UNDEFINED");
        return 0;
}

static struct str unquoted(struct str s)
{
        if (s.n > 1 && s.p[0] == s.p[s.n - 1] && (s.p[0] == '"' || s.p[0] == '\''))
                return str_make(s.p + 1, s.n - 2);
        return s;
}

static int file_function(struct call *c, const struct path_parts *p, struct str text,
                         const struct str *suffix)
{
        BUF_CLEANUP struct buf value = {.max = MACRO_TEXT_MAX}, path = {.max = MACRO_TEXT_MAX};
        bool late = false;
        struct str s;
        int rc = argument(c, text, &value, &late);

        if (rc)
                return rc;
        s = unquoted(buf_view(&value));
        if (late)
                return keep_call(c, s, suffix);
        if (p->full && !str_starts(s, STR("/"))) {
                if (!c->run->world->cwd)
                        return fail_call(c, "full paths can't be made here", STR_NONE);
                buf_addz(&path, c->run->world->cwd);
                if (!str_ends(buf_view(&path), STR("/")))
                        buf_char(&path, '/');
                if (str_starts(s, STR("./")))
                        s = str_skip(s, 2);
        }
        buf_str(&path, s);
        for (size_t i = 0; p->separator && i < path.n; i++)
                if (path.p[i] == '/' || path.p[i] == '\\')
                        path.p[i] = p->separator;
        if (suffix && str_ends(buf_view(&path), *suffix))
                buf_truncate(&path, path.n - suffix->n);
        s = path_parts_select(p, buf_view(&path));
        if (p->quote)
                buf_char(c->out, p->argument_quote ? '\'' : '"');
        buf_str(c->out, s);
        if (p->quote)
                buf_char(c->out, p->argument_quote ? '\'' : '"');
        return 0;
}

static int call_dirname(struct call *c)
{
        return file_function(c, &(struct path_parts){.parts = PATH_PATH}, c->body, NULL);
}

static int call_basename(struct call *c)
{
        struct str rest = c->body, first = STR_NONE, suffix;

        cut_argument(&rest, &first);
        suffix = str_trim(rest);
        return file_function(c, &(struct path_parts){.parts = PATH_NAME | PATH_EXTENSION}, first,
                             rest.p ? &suffix : NULL);
}

/* Gives the ClassAd expression of $EVAL and $STRING, which base cannot evaluate itself. An argument that is
 * the name of a macro stands for the macro's value. */
static int expression(struct call *c, struct buf *text)
{
        bool late = false;
        int rc = argument(c, c->body, text, &late);

        if (rc)
                return rc;
        if (late)
                return fail_call(c, "it can't look at what differs from job to job", STR_NONE);
        return c->run->world->evaluate ? 0 : fail_call(c, "expressions can't be evaluated here", STR_NONE);
}

static int call_eval(struct call *c)
{
        BUF_CLEANUP struct buf text = {.max = MACRO_TEXT_MAX};
        struct err why = {{0}};
        int rc = expression(c, &text);

        if (rc)
                return rc;
        rc = c->run->world->evaluate(c->run->world->arg, buf_view(&text), c->out, &why);
        return rc ? fail_call(c, why.text, STR_NONE) : 0;
}

/* The text of a string value; any other expression stays as it is written. */
static int string_value(struct call *c, struct buf *ret)
{
        BUF_CLEANUP struct buf text = {.max = MACRO_TEXT_MAX}, asked = {.max = 2 * MACRO_TEXT_MAX},
                               is_string = {.max = 64};
        struct err why = {{0}};
        int rc = expression(c, &text);

        if (rc)
                return rc;
        buf_printf(&asked, "isString(" STR_FMT "\n)", STR_ARG(buf_view(&text)));
        if (c->run->world->evaluate(c->run->world->arg, buf_view(&asked), &is_string, &why) == 0 &&
            str_eq(buf_view(&is_string), STR("true")))
                rc = c->run->world->evaluate(c->run->world->arg, buf_view(&text), ret, &why);
        else
                buf_str(ret, buf_view(&text));
        return rc ? fail_call(c, why.text, STR_NONE) : 0;
}

/* $STRING(expression) and $STRING(NAME,format): only a name has a format, for expressions have commas. */
static int call_string(struct call *c)
{
        BUF_CLEANUP struct buf value = {.max = MACRO_TEXT_MAX}, format = {.max = MACRO_TEXT_MAX},
                               checked = {.max = 4096};
        struct str rest = c->body, first = STR_NONE;
        bool late = false;
        int rc;

        cut_argument(&rest, &first);
        if (!rest.p || !macro_is_name(str_trim(first)))
                return string_value(c, c->out);
        c->body = first;
        rc = string_value(c, &value);
        if (!rc)
                rc = macro_deeper(c->run, rest, &format, &late);
        if (!rc && (late || memchr(buf_view(&format).p, '\0', format.n)))
                return fail_call(c, "no format for a text:", rest);
        if (!rc)
                rc = check_format(c, buf_view(&format), "s", "", &checked);
        if (!rc && buf_check(&checked))
                rc = fail_call(c, "the format is too long", STR_NONE);
        if (rc)
                return rc;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        buf_printf(c->out, buf_z(&checked), buf_z(&value));
#pragma GCC diagnostic pop
        return 0;
}

static const struct {
        const char *name;
        int (*call)(struct call *c);
} functions[] = {
        {"INT", call_int},
        {"REAL", call_real},
        {"SUBSTR", call_substr},
        {"CHOICE", call_choice},
        {"ENV", call_env},
        {"RANDOM_CHOICE", call_random_choice},
        {"RANDOM_INTEGER", call_random_integer},
        {"DIRNAME", call_dirname},
        {"BASENAME", call_basename},
        {"JOB_CHOICE", call_job_choice}, /* form of random choices that are made for each job */
        {"JOB_INTEGER", call_job_integer},
        {"STRING", call_string},
        {"EVAL", call_eval},
};

bool macro_function_known(struct str name)
{
        struct path_parts p = {0};

        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
                if (str_eqz(name, functions[i].name))
                        return true;
        return str_starts(name, STR("F")) && path_parts_read(str_skip(name, 1), &p);
}

int macro_function_call(struct macro_run *r, struct str name, struct str body, struct buf *out, bool *late)
{
        struct call c = {.run = r, .name = name, .body = body, .out = out, .late = late};
        struct path_parts p = {0};

        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
                if (str_eqz(name, functions[i].name))
                        return functions[i].call(&c);
        path_parts_read(str_skip(name, 1), &p);
        return file_function(&c, &p, body, NULL);
}
