/* The meaning of a keyword is found by reading a submit file that has it, and one that has not. */
#include "cli/client/edit.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "cli/client/world.h"
#include "cli/terminal/cli.h"
#include "jdl/condor/condor.h"
#include "jdl/condor/keywords.h"

static const char first_lines[] = "executable = /bin/true\ntransfer_executable = false\n";

bool edit_is_assignment(const char *word)
{
        const char *p = word + (*word == '+');

        if (!isalpha((unsigned char)*p) && *p != '_')
                return false;
        while (isalnum((unsigned char)*p) || *p == '_' || *p == '.')
                p++;
        return *p == '=' && p[1] != '=';
}

struct assignment {
        struct str name, value; /* name: without MY. and + */
        const struct keyword *keyword;
        bool is_attribute; /* it had one of these */
};

/* Returns the keyword for an option of `drover submit -- COMMAND`; NULL: there is none. */
static const struct keyword *option_keyword(struct str *name)
{
        static const char *const options[][2] = {{"cpus", "request_cpus"},
                                                 {"memory", "request_memory"},
                                                 {"disk", "request_disk"},
                                                 {"gpus", "request_gpus"},
                                                 {"time", "allowed_execute_duration"}};

        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
                if (str_ieqz(*name, options[i][0])) {
                        *name = str_of(options[i][1]);
                        return keyword_find(*name);
                }
        return NULL;
}

static struct assignment split(const char *word)
{
        const char *eq = strchr(word, '=');
        struct assignment a = {.name = str_trim(str_make(word, (size_t)(eq - word))),
                               .value = str_trim(str_of(eq + 1))};

        a.keyword = keyword_find(a.name);
        if (!a.keyword)
                a.keyword = option_keyword(&a.name);
        if (str_ieq(str_head(a.name, 3), STR("MY.")))
                a.name = str_skip(a.name, 3), a.keyword = NULL, a.is_attribute = true;
        else if (a.name.n && a.name.p[0] == '+')
                a.name = str_skip(a.name, 1), a.keyword = NULL, a.is_attribute = true;
        return a;
}

static bool keyword_sets(const struct keyword *k, const char *attribute)
{
        return k && k->attribute && strcmp(k->attribute, attribute) == 0;
}

/* JobPolicy is the attribute of job_policy, and no slip. */
static bool is_spelling(const char *keyword, struct str name)
{
        size_t n = 0;

        for (; *keyword; keyword++)
                if (*keyword != '_') {
                        if (n == name.n ||
                            tolower((unsigned char)name.p[n]) != tolower((unsigned char)*keyword))
                                return false;
                        n++;
                }
        return n == name.n;
}

static int edit_add_line(struct buf *text, struct edit *e, const struct assignment *a, enum edit_of what,
                         struct err *err)
{
        const struct keyword *near = a->keyword || a->is_attribute ? NULL : keyword_near(a->name);

        if (near && !is_spelling(near->name, a->name))
                return err_set(err, -EINVAL,
                               "there is no keyword " STR_FMT
                               "; did you mean %s? An attribute of that name is "
                               "MY." STR_FMT,
                               STR_ARG(a->name), near->name, STR_ARG(a->name));
        if (memchr(a->value.p, '\n', a->value.n))
                return err_set(err, -EINVAL, STR_FMT ": a value is one line", STR_ARG(a->name));
        if (what == EDIT_JOBS && keyword_sets(a->keyword, "HoldOnSubmit"))
                return err_set(err, -EINVAL, "use `drover hold` and `drover release` for that");
        if (what == EDIT_JOBS && keyword_sets(a->keyword, "JobPrio")) {
                e->has_priority = true;
                if (str_to_i64(a->value, &e->priority) != 0 || e->priority > INT32_MAX ||
                    e->priority < INT32_MIN)
                        return err_set(err, -EINVAL, "the priority \"" STR_FMT "\" is no whole number",
                                       STR_ARG(a->value));
                return 0;
        }
        if (a->keyword && a->keyword->effect != KEYWORD_ACTS && a->keyword->effect != KEYWORD_KEPT)
                return err_set(err, -EINVAL, STR_FMT " has no effect: %s", STR_ARG(a->name),
                               a->keyword->text);
        if (a->value.n)
                buf_printf(text, "%s" STR_FMT " = " STR_FMT "\n", a->keyword ? "" : "MY.", STR_ARG(a->name),
                           STR_ARG(a->value));
        return 0;
}

static int read_part(const struct world *w, struct str text, struct form *ret, struct err *err)
{
        static const struct condor_options none;
        struct err why = {""};
        const char *at = why.text;
        int r = condor_parse(&w->form, "-", text, &none, ret, &why);

        if (r != 0) { /* "-:3: ...": nobody has written these lines */
                at += strncmp(at, "-:", 2) == 0 ? strcspn(at, " ") : 0;
                err_set(err, r, "%s", at + (*at == ' '));
        }
        return r;
}

static void add_change(struct json *j, struct json *late, struct edit *e, const char *name, const char *text,
                       bool is_late)
{
        json_kstrz(j, name, text);
        if (is_late)
                json_strz(late, name);
        e->count++;
}

/* By its keyword: a value that is the default is meant, too. */
static bool is_assigned(const char *attribute, const struct assignment *all, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (all[i].value.n && keyword_sets(all[i].keyword, attribute))
                        return true;
        return false;
}

/* Attributes that the lines give another text; and those that were taken away. */
static void add_changes(struct edit *e, struct form_part *with, struct form_part *without,
                        const struct assignment *all, size_t count)
{
        struct buf late BUF_CLEANUP = {0};
        struct json j = {.out = &e->members}, l = {.out = &late};
        bool conditions = false;

        for (size_t i = 0; i < count; i++)
                conditions |= str_ieqz(all[i].name, "requirements");
        json_key(&j, "attributes");
        json_open(&j, '{');
        json_open(&l, '[');
        for (size_t i = 0; i < with->attribute_count; i++) {
                const struct form_attribute *a = &with->attributes[i],
                                            *had = form_get(without, str_of(a->name));

                if ((had && strcmp(had->text, a->text) == 0 && !is_assigned(a->name, all, count)) ||
                    (!conditions && strcmp(a->name, "Requirements") == 0))
                        continue;
                add_change(&j, &l, e, a->name, a->text, a->late);
        }
        for (size_t i = 0; i < count; i++) {
                struct buf name BUF_CLEANUP = {0};

                if (all[i].value.n || keyword_sets(all[i].keyword, "JobPrio"))
                        continue;
                if (all[i].keyword)
                        buf_addz(&name, all[i].keyword->attribute);
                else
                        buf_str(&name, all[i].name);
                add_change(&j, &l, e, buf_z(&name), "", false);
        }
        json_close(&j, '}');
        json_close(&l, ']');
        json_key(&j, "late");
        json_raw(&j, buf_view(&late));
}

int edit_read(const char *const *assignments, size_t count, enum edit_of what, struct edit *ret,
              struct err *err)
{
        struct buf text BUF_CLEANUP = {0};
        struct assignment *all = mem_array(NULL, count + 1, sizeof(*all));
        struct form with, without;
        struct world w;
        int r = 0;

        *ret = (struct edit){0};
        form_init(&with);
        form_init(&without);
        buf_addz(&text, first_lines);
        for (size_t i = 0; i < count && r == 0; i++) {
                all[i] = split(assignments[i]);
                r = edit_add_line(&text, ret, &all[i], what, err);
        }
        buf_addz(&text, "queue\n");
        if (r == 0)
                r = world_init(&w, err);
        if (r == 0)
                r = read_part(&w, buf_view(&text), &with, err);
        buf_reset(&text);
        buf_printf(&text, "%squeue\n", first_lines);
        if (r == 0)
                r = read_part(&w, buf_view(&text), &without, err);
        if (r == 0 && (with.part_count != 1 || without.part_count != 1))
                r = err_set(err, -EINVAL, "a queue statement is no change of a job");
        if (r == 0)
                add_changes(ret, &with.parts[0], &without.parts[0], all, count);
        for (size_t i = 0; r == 0 && i < with.warning_count; i++)
                cli_note("%s", with.warnings[i].text);
        form_deinit(&with);
        form_deinit(&without);
        free(all);
        return r < 0 ? -EINVAL : r;
}

void edit_deinit(struct edit *e)
{
        buf_deinit(&e->members);
}
