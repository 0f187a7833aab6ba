/* Functions that HTCondor's tools add: argument and environment strings, and users. There is no user database
 * here: userHome and userMap answer as on a machine that knows nobody. */
#include "base/job/args.h"
#include "classad/functions.h"

/* A word as HTCondor's library writes it: white space and quotes stand in quotes of their own, a' 'b. */
static void quote_word(struct str word, struct buf *out)
{
        bool inside = false;

        if (word.n == 0)
                buf_addz(out, "''");
        for (size_t i = 0; i <= word.n; i++) {
                bool special = i < word.n && strchr(" \t\n\r'", word.p[i]) && word.p[i];

                if (special != inside)
                        buf_char(out, '\'');
                inside = special;
                if (i == word.n)
                        break;
                if (word.p[i] == '\'')
                        buf_char(out, '\'');
                buf_char(out, word.p[i]);
        }
}

static void give_joined(const struct call *c, const struct args *a, struct value *ret)
{
        struct buf out BUF_CLEANUP = {.max = c->run->ev->bytes_max};

        for (size_t i = 0; i < a->n; i++) {
                buf_addz(&out, i ? " " : "");
                quote_word(str_of(a->v[i]), &out);
        }
        if (out.overflow)
                run_limit(c->run, "memory");
        else
                run_text(c->run, buf_view(&out), ret);
}

static bool text_fits(const struct call *c, struct str s)
{
        return run_steps(c->run, 1 + s.n / 4); /* each word is a piece of memory or two */
}

static size_t name_length(const char *word)
{
        const char *equals = strchr(word, '=');

        return equals ? (size_t)(equals - word) : strlen(word);
}

static int by_name(const void *a, const void *b)
{
        const char *x = *(char *const *)a, *y = *(char *const *)b;

        return str_cmp(str_make(x, name_length(x)), str_make(y, name_length(y)));
}

/* The library keeps an environment in the order of its names. */
static void sort_names(struct args *env)
{
        if (env->n)
                qsort(env->v, env->n, sizeof(*env->v), by_name);
}

void function_envV1ToV2(const struct call *c, struct value *ret)
{
        struct args env ARGS_CLEANUP = {0};

        if (call_strict(c, ret) || c->args[0].type != VALUE_STRING || !text_fits(c, c->args[0].string))
                return;
        if (args_env_v1(&env, c->args[0].string, NULL) != 0)
                return;
        sort_names(&env);
        give_joined(c, &env, ret);
}

void function_mergeEnvironment(const struct call *c, struct value *ret)
{
        struct args all ARGS_CLEANUP = {0};

        for (unsigned i = 0; i < c->argc; i++) {
                if (c->args[i].type == VALUE_UNDEFINED)
                        continue;
                if (c->args[i].type != VALUE_STRING || !text_fits(c, c->args[i].string) ||
                    args_env_v2(&all, c->args[i].string, NULL) != 0)
                        return;
        }
        sort_names(&all);
        give_joined(c, &all, ret);
}

/* The version argument: 1 or 2, 2 when it is missing. */
static bool version(const struct call *c, int64_t *ret)
{
        *ret = 2;
        if (c->argc == 2 &&
            (c->args[1].type != VALUE_INTEGER || c->args[1].integer < 1 || c->args[1].integer > 2))
                return false;
        if (c->argc == 2)
                *ret = c->args[1].integer;
        return true;
}

void function_argsToList(const struct call *c, struct value *ret)
{
        struct args a ARGS_CLEANUP = {0};
        struct value_list *list;
        struct value *items;
        int64_t v;
        int r;

        if (c->args[0].type != VALUE_STRING || !version(c, &v) || !text_fits(c, c->args[0].string))
                return;
        r = v == 1 ? args_split_v1(&a, c->args[0].string, NULL) : args_split_v2(&a, c->args[0].string, NULL);
        if (r != 0 || !(list = run_list(c->run, (uint32_t)a.n, &items)))
                return;
        for (size_t i = 0; i < a.n; i++)
                if (!run_text(c->run, str_of(a.v[i]), &items[i]))
                        return;
        *ret = (struct value){.type = VALUE_LIST, .list = list};
}

static bool has_space(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] == ' ' || (s.p[i] >= '\t' && s.p[i] <= '\r'))
                        return true;
        return s.n == 0;
}

void function_listToArgs(const struct call *c, struct value *ret)
{
        struct buf out BUF_CLEANUP = {.max = c->run->ev->bytes_max};
        struct value member;
        int64_t v;

        if (c->args[0].type != VALUE_LIST || !version(c, &v) || c->args[0].list->n > ARGS_MAX)
                return;
        for (uint32_t i = 0; i < c->args[0].list->n; i++) {
                run_item(c->run, c->args[0].list, i, &member);
                if (member.type != VALUE_STRING || (v == 1 && has_space(member.string)) ||
                    !text_fits(c, member.string))
                        return;
                buf_addz(&out, i ? " " : "");
                if (v == 2)
                        quote_word(member.string, &out);
                else
                        buf_str(&out, member.string);
        }
        if (out.overflow)
                run_limit(c->run, "memory");
        else
                run_text(c->run, buf_view(&out), ret);
}

void function_userHome(const struct call *c, struct value *ret)
{
        if (c->argc == 2 && c->args[1].type == VALUE_STRING && c->args[1].string.n)
                *ret = c->args[1];
        else if (c->args[0].type == VALUE_STRING || c->args[0].type == VALUE_UNDEFINED)
                *ret = value_undefined();
}

void function_userMap(const struct call *c, struct value *ret)
{
        if (c->args[0].type == VALUE_ERROR || c->args[1].type == VALUE_ERROR)
                return;
        *ret = c->argc == 4 ? c->args[3] : value_undefined();
}
