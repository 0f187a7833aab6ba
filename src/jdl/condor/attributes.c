/* Makes the attributes of one part from settings. Values are expanded as far as they are known; late values
 * are expanded for the first job as a check, so that mistakes are found at submit. */
#include <errno.h>

#include "base/job/args.h"
#include "base/job/batch_word.h"
#include "base/job/match_macro.h"
#include "classad/sense.h"
#include "jdl/condor/names.h"
#include "jdl/condor/reader.h"

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
        bool node = s->reader->sets && str_ieqz(name, "Node");

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

/* The keywords whose value is the attribute. */
static int plain_keywords(struct reader *r)
{
        for (size_t i = 0; i < keyword_count; i++) {
                const struct keyword *k = &keywords[i];
                ENTRY_CLEANUP struct entry e = {0};
                int rc;

                if (k->kind == KEYWORD_OTHER)
                        continue;
                rc = k->kind == KEYWORD_STRING ? entry_get(r, k->name, &e)
                                               : entry_get_expression(r, k->name, &e);
                if (rc > 0)
                        rc = k->kind == KEYWORD_STRING
                                     ? attribute_string(r, k->attribute, &e, entry_unquoted(&e))
                                     : attribute_expression(r, k->attribute, &e, buf_view(&e.text));
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* Keywords that are known and do nothing, or can't be done. Families of them (docker_…) are looked at last:
 * what something has used by then is a macro of the user's that happens to be called so. */
static int other_keywords(struct reader *r, bool families)
{
        for (size_t i = 0; i < r->setting_count; i++) {
                struct setting *s = r->settings[i];
                const struct keyword *k = s->builtin ? NULL : keyword_find(str_of(s->name));
                ENTRY_CLEANUP struct entry e = {0};
                int rc;

                if (!k || k->effect == KEYWORD_ACTS || (strchr(k->name, '*') != NULL) != families ||
                    (families && s->used))
                        continue;
                rc = entry_get(r, s->name, &e);
                if (rc < 0)
                        return rc;
                if (rc == 0 || keyword_is_quiet(k, entry_unquoted(&e)))
                        continue;
                if (strchr(k->name, '*') && keyword_near(str_of(s->name)))
                        return reader_fail(r, s->at, "unknown keyword %s; did you mean %s?", s->name,
                                           keyword_near(str_of(s->name))->name);
                if (k->effect == KEYWORD_REFUSED)
                        return reader_fail(r, s->at, "%s is not supported. %s", s->name, k->text);
                reader_warn(r, s->at, "%s is %s. %s", s->name,
                            k->effect == KEYWORD_KEPT ? "kept but not acted on" : "ignored", k->text);
        }
        return 0;
}

/* Sets an attribute by its setting, or variable of the queue statement, MY.Attribute. */
static int own_attribute(struct reader *r, const char *setting, struct place at)
{
        static const char *const fixed[] = {"ClusterId", "ProcId", "Owner", "User", "QDate", "JobStatus"};
        ENTRY_CLEANUP struct entry e = {0};
        const char *name = setting + 3;
        int rc;

        for (size_t k = 0; k < sizeof(fixed) / sizeof(fixed[0]); k++)
                if (str_ieqz(str_of(name), fixed[k]))
                        return reader_fail(r, at, "%s is set by the server; leave this line out", name);
        rc = entry_get_expression(r, setting, &e);
        e.keyword = name;
        if (rc > 0)
                rc = attribute_expression(r, name, &e, buf_view(&e.text));
        return rc < 0 ? rc : 0;
}

/* +Attribute and MY.Attribute. */
static int own_attributes(struct reader *r)
{
        struct place queue = {r->files[0], r->part->line};
        int rc = 0;

        for (size_t i = 0; !rc && i < r->setting_count; i++) {
                struct setting *s = r->settings[i];

                if (!str_istarts(str_of(s->name), STR("MY.")))
                        continue;
                /* A line that HTCondor's users write so that another server fills it in. */
                if (str_ieqz(str_of(s->name), "MY.Owner") &&
                    str_ieqz(str_trim(str_of(s->value)), "undefined"))
                        s->used = true;
                else
                        rc = own_attribute(r, s->name, s->at);
        }
        for (size_t i = 0; !rc && i < r->part->variable_count; i++)
                if (str_istarts(str_of(r->part->variables[i]), STR("MY.")))
                        rc = own_attribute(r, r->part->variables[i], queue);
        return rc;
}

/* The text of an attribute that is the same for all jobs; false when it is none. */
static bool plain_text(struct reader *r, const char *attribute, struct buf *ret)
{
        const struct form_attribute *a = form_get(r->part, str_of(attribute));
        struct expr *x = NULL;
        struct value v;
        bool is_text = a && !a->late && expr_parse(r->symbols, str_of(a->text), &x, NULL) == 0 &&
                       expr_literal(x, &v) && v.type == VALUE_STRING;

        if (is_text)
                buf_str(ret, v.string);
        expr_free(x);
        return is_text;
}

/* +TransferInputSizes goes by the list of the inputs. */
static int input_sizes(struct reader *r)
{
        const struct setting *s = settings_get(r, STR("MY.TransferInputSizes"));
        BUF_CLEANUP struct buf sizes = {0}, inputs = {0};
        struct err err;

        if (!s || !plain_text(r, "TransferInputSizes", &sizes) ||
            (!plain_text(r, "TransferInput", &inputs) && form_get(r->part, STR("TransferInput"))) ||
            sense_check_sizes(buf_view(&sizes), buf_view(&inputs), &err) == 0)
                return 0;
        return reader_fail(r, s->at, "TransferInputSizes: %s", err.text);
}

/* A keyword that sets an attribute of the submit when it is true. */
static int flag(struct reader *r, const char *keyword, const char *attribute)
{
        ENTRY_CLEANUP struct entry e = {0};
        bool is = false;
        int rc = entry_get(r, keyword, &e);

        if (rc > 0)
                rc = entry_boolean(r, &e, &is);
        if (rc == 0 && is)
                attribute_default(r, attribute, "true");
        return rc < 0 ? rc : 0;
}

int attributes_make(struct reader *r)
{
        int rc = other_keywords(r, false);

        if (!rc)
                rc = universe_make(r);
        if (!rc)
                rc = sets_make(r);
        if (!rc && r->universe == UNIVERSE_DATA)
                rc = placement_make(r);
        else if (!rc)
                rc = command_make(r);
        if (!rc && r->universe != UNIVERSE_DATA)
                rc = files_make(r);
        if (!rc)
                rc = placement_size(r, "transfer_output_size");
        if (!rc)
                rc = dataset_make(r);
        if (!rc)
                rc = plain_keywords(r);
        if (!rc)
                rc = accounts_make(r);
        if (!rc)
                rc = meta_make(r);
        if (!rc)
                rc = policy_make(r);
        if (!rc && r->universe == UNIVERSE_DATA)
                placement_policy(r);
        if (!rc)
                rc = flag(r, "hold", "HoldOnSubmit");
        if (!rc)
                rc = flag(r, "mirror", "Mirror");
        if (!rc)
                rc = notices_make(r);
        if (!rc)
                rc = own_attributes(r);
        if (!rc)
                rc = input_sizes(r);
        if (!rc)
                rc = places_make(r);
        if (!rc && r->options->submit_host)
                attribute_default_string(r, "SubmitHost", r->options->submit_host);
        if (!rc && r->options->filesystem_domain &&
            (form_get(r->part, STR("UserLog")) || form_get(r->part, STR("WantIOProxy")) ||
             form_get(r->part, STR("StreamOut")) || form_get(r->part, STR("StreamErr"))) &&
            !form_get(r->part, STR("FileSystemDomain")))
                attribute_default_string(r, "UserLogDomain", r->options->filesystem_domain);
        return rc ? rc : other_keywords(r, true);
}

void attributes_unused(struct reader *r)
{
        for (size_t i = 0; i < r->setting_count; i++) {
                struct setting *s = r->settings[i];
                const struct keyword *near;

                if (!s->used && placement_keyword(s->name)) {
                        reader_warn(r, s->at, "%s goes with universe = data, and nothing uses it here",
                                    s->name);
                        continue;
                }
                if (s->used || s->builtin || keyword_find(str_of(s->name)))
                        continue;
                near = keyword_near(str_of(s->name));
                if (near)
                        reader_warn(r, s->at, "unknown keyword %s, ignored; did you mean %s?", s->name,
                                    near->name);
                else
                        reader_warn(r, s->at,
                                    "unknown keyword %s, ignored; for an attribute of the job write +%s",
                                    s->name, s->name);
        }
}
