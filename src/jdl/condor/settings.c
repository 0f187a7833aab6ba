#include "jdl/condor/reader.h"

#include <errno.h>

#include "classad/eval.h"

static bool one_of(struct str name, const char *const *names)
{
        for (; *names; names++)
                if (str_ieqz(name, *names))
                        return true;
        return false;
}

struct setting *settings_get(struct reader *r, struct str name)
{
        return map_get(r->by_name, name);
}

static struct setting *put_setting(struct reader *r, struct str name, struct str value)
{
        struct setting *s = settings_get(r, name);

        if (!s) {
                s = mem_new(struct setting);
                s->name = str_dupz(name);
                map_put(r->by_name, name, s);
                MEM_GROW(r->settings, r->setting_cap, r->setting_count + 1);
                r->settings[r->setting_count++] = s;
        }
        free(s->value);
        s->value = str_dupz(value);
        return s;
}

void settings_builtin(struct reader *r, const char *name, struct str value)
{
        struct setting *s = put_setting(r, str_of(name), value);

        s->builtin = true;
        s->used = true;
}

void settings_deinit(struct reader *r)
{
        for (size_t i = 0; i < r->setting_count; i++) {
                free(r->settings[i]->name);
                free(r->settings[i]->value);
                free(r->settings[i]);
        }
        free(r->settings);
        map_free(r->by_name);
}

static enum macro_found lookup_itself(void *arg, struct str name, struct buf *out)
{
        const struct setting *s = arg;

        if (!str_ieqz(name, s->name))
                return MACRO_LATE;
        buf_addz(out, s->value);
        return MACRO_FINAL;
}

/* Returns whether text refers to the macro `name`: $(name) or $(name:…). */
static bool refers(struct str text, struct str name)
{
        for (ptrdiff_t at; (at = str_search(text, STR("$("))) >= 0;) {
                text = str_skip(text, (size_t)at + 2);
                if (str_istarts(text, name) && text.n > name.n &&
                    (text.p[name.n] == ')' || text.p[name.n] == ':'))
                        return true;
        }
        return false;
}

int settings_set(struct reader *r, struct str name, struct str value, struct place at)
{
        BUF_CLEANUP struct buf own = {.max = CONDOR_VALUE_MAX};
        struct setting *s = settings_get(r, name);
        struct setting none = {.name = str_dupz(name), .value = (char *)""};
        int rc = 0;

        if (refers(value, name)) {
                struct macro_world w = {.arg = s ? s : &none, .lookup = lookup_itself};
                struct err err = {{0}};

                rc = macro_expand(&w, value, &own, NULL, &err);
                if (rc)
                        reader_fail(r, at, "%s", err.text);
                value = buf_view(&own);
        }
        if (!rc) {
                bool used = s && s->used;

                s = put_setting(r, name, value);
                s->at = at;
                s->builtin = false;
                s->used = used;
        }
        free(none.name);
        return rc;
}

/* $(request_cpus) is what was assigned as RequestCpus, too; no other keyword is found by its aliases. */
static struct setting *by_alias(struct reader *r, struct str name)
{
        const struct keyword *k = keyword_find(name);
        struct str rest = str_of(k ? k->aliases : NULL), alias;
        struct setting *s = NULL;

        while (!s && str_word(&rest, &alias))
                s = settings_get(r, alias);
        return s;
}

static enum macro_found macro_lookup(void *arg, struct str name, struct buf *out)
{
        static const char *const member[] = {"Process", "ProcId", "Cluster", "ClusterId", "Step", NULL};
        static const char *const rows[] = {"Row", "ItemIndex", NULL};
        static const char *const process[] = {"Process", "ProcId", NULL};
        struct reader *r = arg;
        struct setting *s;

        for (size_t i = 0; r->part && i < r->part->variable_count; i++)
                if (str_ieqz(name, r->part->variables[i]))
                        return MACRO_LATE;
        if (r->options->node_names && r->part && one_of(name, process) &&
            (r->options->items || r->part->variable_count == 0)) {
                buf_addz(out, "$(Step)");
                return MACRO_VALUE;
        }
        if (r->options->node_names && r->part && str_ieqz(name, "Cluster")) {
                buf_addz(out, "$(ClusterId)-$(JOB)");
                return MACRO_VALUE;
        }
        if (one_of(name, member) || (r->gangs && str_ieqz(name, "Node")))
                return MACRO_LATE;
        if (one_of(name, rows)) {
                if (!r->slice)
                        return MACRO_LATE;
                buf_addz(out, "$(DroverRow)");
                return MACRO_VALUE;
        }
        s = settings_get(r, name);
        if (!s && str_istarts(name, STR("request_")))
                s = by_alias(r, name);
        if (!s)
                return MACRO_UNKNOWN;
        s->used = true;
        buf_addz(out, s->value);
        return MACRO_VALUE;
}

static void settings_missing(void *arg, struct str name)
{
        struct reader *r = arg;

        reader_warn(r, r->at,
                    "$(" STR_FMT ") is not defined and becomes nothing; write $(" STR_FMT
                    ":) if that is meant",
                    STR_ARG(name), STR_ARG(name));
}

static const char *settings_environment(void *arg, const char *name)
{
        struct reader *r = arg;

        return r->world->getenv ? r->world->getenv(r->world->arg, name) : NULL;
}

/* As text: a string itself, anything else as a literal. */
static int evaluate(void *arg, struct str expression, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = 2 * CONDOR_VALUE_MAX};
        struct reader *r = arg;
        struct expr *x = NULL;
        struct value v;
        struct eval ev;
        int rc = 0;

        expr_text_from_old(expression, &text);
        if (expr_parse(r->symbols, buf_view(&text), &x, err) != 0)
                return -EINVAL;
        eval_init(&ev, r->world->now_s, r->random);
        eval_expr(&ev, x, NULL, NULL, &v);
        if (v.type == VALUE_STRING)
                buf_str(out, v.string);
        else
                value_print(out, &v);
        if (v.type == VALUE_ERROR)
                rc = err_set(err, -EINVAL, "it evaluates to an error");
        eval_deinit(&ev);
        expr_free(x);
        return rc;
}

static int expand(struct reader *r, struct str text, struct place at, struct buf *out, bool *ret_late,
                  bool keep_dollar)
{
        struct macro_world w = {.arg = r,
                                .lookup = macro_lookup,
                                .getenv = r->world->getenv ? settings_environment : NULL,
                                .random = &r->random,
                                .missing = settings_missing,
                                .random_late = ret_late && r->part && r->part->rows * r->part->steps > 1,
                                .evaluate = r->options->work ? NULL : evaluate,
                                .work = r->options->work,
                                .keep_dollar = keep_dollar,
                                .cwd = r->world->cwd};
        struct err err = {{0}};
        bool late = false;
        int rc;

        r->at = at;
        rc = macro_expand(&w, text, out, &late, &err);
        if (rc) {
                reader_fail(r, at, "%s", err.text);
                return rc;
        }
        if (late && !ret_late)
                return reader_fail(
                        r, at, "a value that differs from job to job, like $(Process), can't be used here");
        if (ret_late)
                *ret_late = late;
        return 0;
}

int settings_expand(struct reader *r, struct str text, struct place at, struct buf *out, bool *ret_late)
{
        return expand(r, text, at, out, ret_late, false);
}

int settings_expand_item(struct reader *r, struct str text, struct place at, struct buf *out)
{
        bool late;

        return expand(r, text, at, out, &late, true);
}
