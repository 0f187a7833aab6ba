/* Values of keywords for a part, and the attributes made of them. Values are expanded as far as they are
 * known; late values are expanded for the first job as a check, so that mistakes are found at submit. */
#include "jdl/condor/reader.h"

#include <errno.h>
#include <stdarg.h>

#include "base/job/args.h"
#include "base/job/batch_word.h"
#include "base/job/match_macro.h"
#include "classad/sense.h"
#include "jdl/condor/names.h"

#define TRIED_ROWS_MAX 1000

void entry_deinit(struct entry *e)
{
        buf_deinit(&e->text);
}

/* The keyword as an item variable: `queue arguments from …`. */
static bool is_variable(struct reader *r, struct str name)
{
        for (size_t i = 0; i < r->part->variable_count; i++)
                if (str_ieqz(name, r->part->variables[i]))
                        return true;
        return false;
}

/* Keywords that must be known before a place is. */
static bool is_needed_before(const char *keyword)
{
        static const char *const early[] = {"log",
                                            "initialdir",
                                            "requirements",
                                            "rank",
                                            "universe",
                                            "getenv",
                                            "concurrency_limits",
                                            "accounting_group",
                                            "accounting_group_user"};

        for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++)
                if (str_ieqz(str_of(keyword), early[i]))
                        return true;
        return str_istarts(str_of(keyword), STR("request_"));
}

/* $$() references in a value: they stay in it, and the place where the job runs gives what they stand for. */
static int check_place_values(struct reader *r, const char *keyword, struct str text, struct place at)
{
        const struct keyword *k = keyword_find(str_of(keyword));
        BUF_CLEANUP struct buf plain = {.max = CONDOR_VALUE_MAX};
        enum match_macro_found found;
        struct match_macro m;
        struct str before;

        if (str_starts(text, STR("\"")) && args_unquote_v2(text, &plain, NULL) == 0) {
                text = buf_view(&plain); /* arguments and environment */
        } else if (k && str_ieqz(str_of(k->name), "arguments")) {
                for (size_t i = 0; i < text.n; i++) /* the old syntax */
                        if (text.p[i] != '\\' || i + 1 == text.n || text.p[i + 1] != '"')
                                buf_char(&plain, text.p[i]);
                text = buf_view(&plain);
        }
        if (is_needed_before(k ? k->name : keyword))
                return reader_fail(
                        r, at,
                        "%s: $$(…) is a value of the place where the job will run, and this must be known "
                        "before there is one",
                        keyword);
        while ((found = match_macro_next(&text, &before, &m)) == MATCH_MACRO_ONE) {
                struct expr *x = NULL;
                struct err err = {{0}};
                int rc;

                if (!m.expression.n || str_find(m.expression, '$') >= 0 || str_find(m.expression, '\\') >= 0)
                        continue;
                rc = expr_parse(r->symbols, m.expression, &x, &err);
                expr_free(x);
                if (rc)
                        return reader_fail(r, at, "%s: '$$(" STR_FMT ")' holds no expression: %s", keyword,
                                           STR_ARG(str_head(m.inside, 120)), err.text);
        }
        if (found == MATCH_MACRO_BAD)
                return reader_fail(
                        r, at, "%s: '" STR_FMT "' should be $$(NAME), $$(NAME:DEFAULT) or $$([EXPRESSION])",
                        keyword, STR_ARG(str_head(before, 60)));
        return 0;
}

static int get_one(struct reader *r, struct str name, struct entry *ret)
{
        MEM_CLEANUP char *z = str_dupz(name);
        struct setting *s = settings_get(r, name);
        struct str t;
        int rc;

        buf_reset(&ret->text);
        ret->late = false;
        if (is_variable(r, name)) {
                ret->at = (struct place){r->files[0], r->part->line};
                ret->late = true;
                buf_printf(&ret->text, "$(%s)", z);
                return 1;
        }
        if (!s || s->builtin)
                return 0;
        s->used = true;
        ret->at = s->at;
        rc = settings_expand(r, str_of(s->value), s->at, &ret->text, &ret->late);
        if (rc)
                return rc;
        t = str_trim(buf_view(&ret->text));
        if (match_macro_present(t) && (rc = check_place_values(r, z, t, s->at)) != 0)
                return rc;
        buf_truncate(&ret->text, (size_t)(t.p + t.n - ret->text.p));
        buf_consume(&ret->text, (size_t)(t.p - ret->text.p));
        return ret->text.n > 0;
}

int entry_get(struct reader *r, const char *keyword, struct entry *ret)
{
        const struct keyword *k = keyword_find(str_of(keyword));
        struct str rest = str_of(k ? k->aliases : NULL), alias;
        int rc;

        *ret = (struct entry){.text.max = CONDOR_VALUE_MAX, .keyword = keyword};
        rc = get_one(r, str_of(keyword), ret);
        while (rc == 0 && str_word(&rest, &alias))
                rc = get_one(r, alias, ret);
        return rc;
}

int entry_get_expression(struct reader *r, const char *keyword, struct entry *ret)
{
        struct buf made = {.max = 2 * CONDOR_VALUE_MAX};
        int rc = entry_get(r, keyword, ret);

        if (rc > 0 && str_find(buf_view(&ret->text), '\\') >= 0) {
                expr_text_from_old(buf_view(&ret->text), &made);
                buf_deinit(&ret->text);
                ret->text = made;
        }
        return rc;
}

int entry_fail(struct reader *r, const struct entry *e, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {.max = 4096};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        return reader_fail(r, e->at, "%s: %s", e->keyword, buf_z(&text));
}

int entry_boolean(struct reader *r, const struct entry *e, bool *ret)
{
        static const char *const yes[] = {"true", "yes", "1", "t", "y"}, *const no[] = {"false", "no", "0",
                                                                                        "f", "n"};
        struct str v = entry_unquoted(e);

        for (size_t i = 0; !e->late && i < 5; i++) {
                if (str_ieqz(v, yes[i]))
                        return *ret = true, 0;
                if (str_ieqz(v, no[i]))
                        return *ret = false, 0;
        }
        return entry_fail(r, e, "'" STR_FMT "' is neither True nor False", STR_ARG(str_head(v, 60)));
}

struct str entry_unquoted(const struct entry *e)
{
        struct str s = buf_view(&e->text);

        if (s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"')
                s = str_trim(str_make(s.p + 1, s.n - 2));
        return s;
}

static enum macro_found number(struct buf *out, uint64_t v)
{
        buf_printf(out, "%llu", (unsigned long long)v);
        return MACRO_FINAL;
}

static enum macro_found sample_lookup(void *arg, struct str name, struct buf *out)
{
        struct sample *s = arg;
        struct form_part *p = s->reader->part;
        bool cluster = str_ieqz(name, "Cluster") || str_ieqz(name, "ClusterId");
        bool process = str_ieqz(name, "Process") || str_ieqz(name, "ProcId"), step = str_ieqz(name, "Step");
        bool node = s->reader->gangs && str_ieqz(name, "Node");

        if (str_ieqz(name, "Row") || str_ieqz(name, "ItemIndex"))
                return number(out, s->row);
        if ((cluster || process || step || node) && s->row_only)
                return MACRO_LATE;
        if (cluster)
                return number(out, 1);
        if (process)
                return number(out, s->reader->first_member + s->row * p->steps);
        if (step || node)
                return number(out, 0);
        for (size_t i = 0; i < p->variable_count; i++) {
                if (str_ieqz(name, p->variables[i]))
                        return macro_item(i < s->count ? s->values[i] : STR_NONE, out);
        }
        return MACRO_UNKNOWN;
}

void sample_start(struct sample *s, struct reader *r, bool row_only)
{
        *s = (struct sample){
                .reader = r, .row_only = row_only, .rest = buf_view(&r->part->items), .row = UINT64_MAX};
}

bool sample_next(struct sample *s)
{
        struct str line;

        if (++s->row >= s->reader->part->rows)
                return false;
        s->count = 0;
        if (s->reader->part->variable_count == 0)
                return true;
        str_cut(&s->rest, '\n', &line);
        while (s->count < READER_VARIABLES_MAX && str_cut(&line, '\x1f', &s->values[s->count]))
                s->count++;
        return true;
}

static struct macro_world sample_world(struct sample *s)
{
        return (struct macro_world){.arg = s,
                                    .lookup = sample_lookup,
                                    .random = &s->reader->random,
                                    .cwd = s->reader->world->cwd};
}

int sample_expand(struct sample *s, struct str text, struct buf *out, bool *ret_late, struct err *err)
{
        struct macro_world w = sample_world(s);

        return macro_expand(&w, text, out, ret_late, err);
}

int sample_expand_expression(struct sample *s, struct str text, struct buf *out, struct err *err)
{
        struct macro_world w = sample_world(s);

        return macro_expand_expression(&w, text, out, NULL, err);
}

int derive_column(struct reader *r, const struct entry *e, const char *variable, bool late,
                  derive_fn *convert, bool *ret_done)
{
        struct form_part *p = r->part;
        struct buf items = {.max = FORM_TEXT_MAX};
        BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX}, made = {.max = CONDOR_VALUE_MAX};
        struct sample s;
        struct str rest = buf_view(&p->items), line;
        struct macro_world world;
        struct err err = {{0}};
        int rc = 0;

        *ret_done = false;
        if (p->variable_count == 0 || p->variable_count >= READER_VARIABLES_MAX)
                return 0;
        sample_start(&s, r, true);
        world = sample_world(&s);
        world.keep_dollar = true;
        while (!rc && sample_next(&s)) {
                bool of_job = false;

                buf_reset(&value);
                buf_reset(&made);
                rc = macro_expand(&world, buf_view(&e->text), &value, &of_job, &err);
                if (!rc && of_job && !late) {
                        buf_deinit(&items);
                        return 0;
                }
                if (!rc)
                        rc = convert(r, str_trim(buf_view(&value)), &made, &err);
                if (rc)
                        break;
                str_cut(&rest, '\n', &line);
                buf_str(&items, line);
                buf_char(&items, '\x1f');
                buf_str(&items, buf_view(&made));
                buf_char(&items, '\n');
        }
        if (rc)
                entry_fail(r, e, "row %llu of the list: %s", (unsigned long long)s.row, err.text);
        else if (buf_check(&items))
                rc = entry_fail(r, e, "the list is larger than %u MiB", FORM_TEXT_MAX >> 20);
        if (rc) {
                buf_deinit(&items);
                return rc;
        }
        buf_deinit(&p->items);
        p->items = items;
        form_add_variable(p, str_of(variable));
        *ret_done = true;
        return 0;
}

struct hints {
        struct reader *reader;
        const struct entry *entry;
        const char *attribute;
        struct str text;
        bool said;
};

static void hint_at_name(void *arg, symbol name, bool target)
{
        struct hints *h = arg;
        struct str n = symbols_name(h->reader->symbols, name);
        const char *near = names_near(n);
        BUF_CLEANUP struct buf own = {0};

        (void)target;
        buf_printf(&own, "MY." STR_FMT, STR_ARG(n));
        if (form_get(h->reader->part, n) || settings_get(h->reader, buf_view(&own)))
                return;
        if (batch_word_is(str_of(h->attribute)) && !names_known(n)) {
                if (!h->said)
                        reader_warn(h->reader, h->entry->at,
                                    "%s: no attribute is called " STR_FMT
                                    "; a text stands in quotes: \"" STR_FMT "\"",
                                    h->entry->keyword, STR_ARG(n), STR_ARG(str_head(h->text, 120)));
                h->said = true;
        } else if (near) {
                reader_warn(h->reader, h->entry->at, "%s: no attribute is called " STR_FMT "; is %s meant?",
                            h->entry->keyword, STR_ARG(n), near);
        } else if (str_istarts(str_of(h->attribute), STR("Request")) && str_ieq(str_trim(h->text), n) &&
                   !names_known(n)) {
                reader_warn(h->reader, h->entry->at,
                            "%s: " STR_FMT " is the name of an attribute and no amount; "
                            "a job without this attribute matches no place",
                            h->entry->keyword, STR_ARG(n));
        }
}

/* Parses one expression of the attribute. where: "" or which job's it is. */
static int parse_one(struct reader *r, const char *attribute, const struct entry *e, struct str text,
                     const char *where, bool hints)
{
        struct expr *x = NULL;
        struct expr_uses uses;
        struct err err = {{0}};
        int rc = expr_parse(r->symbols, text, &x, &err);

        if (rc == 0 && hints)
                expr_references(x, NULL, hint_at_name, &(struct hints){r, e, attribute, text, false}, &uses);
        if (rc == 0 && sense_check(str_of(attribute), x, &err) != 0)
                rc = entry_fail(r, e, "%s%s", err.text, where);
        expr_free(x);
        if (rc <= 0)
                return rc;
        return entry_fail(r, e, "'" STR_FMT "'%s is no expression: %s", STR_ARG(str_head(text, 120)), where,
                          err.text);
}

/* Parses an attribute's text; a late one as it will be for the first job of each row, up to TRIED_ROWS_MAX.
 */
static int check_expression(struct reader *r, const char *attribute, const struct entry *e, struct str text)
{
        BUF_CLEANUP struct buf tried = {.max = CONDOR_VALUE_MAX}, where = {0};
        struct err err = {{0}};
        struct sample s;
        int rc = 0;

        if (!e->late)
                return parse_one(r, attribute, e, text, "", true);
        sample_start(&s, r, false);
        while (!rc && sample_next(&s) && s.row < TRIED_ROWS_MAX) {
                buf_reset(&tried);
                buf_reset(&where);
                if (r->part->variable_count)
                        buf_printf(&where, " (row %llu of the list)", (unsigned long long)s.row);
                else
                        buf_addz(&where, " (as it is for the first job)");
                rc = sample_expand_expression(&s, text, &tried, &err);
                if (rc)
                        rc = entry_fail(r, e, "%s%s", err.text, s.row ? buf_z(&where) : "");
                else
                        rc = parse_one(r, attribute, e, buf_view(&tried), buf_z(&where), s.row == 0);
        }
        return rc;
}

static void set_attribute(struct reader *r, const char *attribute, const struct entry *e, struct str text)
{
        form_set(r->part, str_of(attribute), text, e->at.line);
        form_set_late(r->part, str_of(attribute), e->late);
}

int attribute_expression(struct reader *r, const char *attribute, const struct entry *e, struct str text)
{
        int rc = check_expression(r, attribute, e, text);

        if (!rc)
                set_attribute(r, attribute, e, text);
        return rc;
}

int attribute_string(struct reader *r, const char *attribute, const struct entry *e, struct str text)
{
        BUF_CLEANUP struct buf quoted = {.max = 2 * CONDOR_VALUE_MAX};

        print_string(&quoted, text);
        if (e->late) {
                int rc = check_expression(r, attribute, e, buf_view(&quoted));

                if (rc)
                        return rc;
        }
        set_attribute(r, attribute, e, buf_view(&quoted));
        return 0;
}

void attribute_default(struct reader *r, const char *attribute, const char *expression)
{
        if (!form_get(r->part, str_of(attribute)))
                form_set(r->part, str_of(attribute), str_of(expression), 0);
}

void attribute_default_string(struct reader *r, const char *attribute, const char *value)
{
        BUF_CLEANUP struct buf quoted = {0};

        print_string(&quoted, str_of(value));
        attribute_default(r, attribute, buf_z(&quoted));
}
