/* Requirements of jobs on a place, with their default clauses. As in condor_submit, Arch, OpSys, custom
 * resources and the clauses about file transfer are left out if the user's own requirements mention the
 * attribute. Cores and the two sizes are always compared, since the place subtracts them from its free
 * amounts. */
#include "base/job/environment.h"
#include "classad/expr.h"
#include "jdl/condor/reader.h"

struct mentions {
        struct symbols *symbols;
        struct map *targets; /* names of the place's attributes, as the map's keys */
};

static void see_reference(void *arg, symbol name, bool target)
{
        struct mentions *m = arg;

        if (target)
                map_put(m->targets, symbols_name(m->symbols, name), m);
}

static bool mentioned(void *arg, struct str name)
{
        return map_get(((struct mentions *)arg)->targets, name) != NULL;
}

static bool mentions_any(const struct mentions *m, struct str prefix)
{
        struct str name;
        void *value;

        for (size_t at = 0; map_next(m->targets, &at, &name, &value);)
                if (str_istarts(name, prefix))
                        return true;
        return false;
}

/* Collects the names that the user's requirements mention, as expanded for the first job. */
static int look_at(struct reader *r, const struct entry *e, struct mentions *m)
{
        BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX}, bracketed = {.max = CONDOR_VALUE_MAX};
        struct expr *x = NULL;
        struct ad *my = NULL;
        struct str text = buf_view(&e->text);
        struct sample s;
        struct expr_uses uses;
        struct err err = {{0}};
        int rc;

        sample_start(&s, r, false);
        if (e->late && sample_next(&s)) {
                if (sample_expand_expression(&s, text, &value, &err))
                        return entry_fail(r, e, "%s", err.text);
                text = buf_view(&value);
        }
        rc = expr_parse(r->symbols, text, &x, &err);
        if (rc) { /* in parentheses, as it will stand, it may be one: "True) && (Machine == "a") || (False" */
                buf_printf(&bracketed, "(" STR_FMT ")", STR_ARG(text));
                rc = expr_parse(r->symbols, buf_view(&bracketed), &x, NULL);
        }
        if (rc)
                return entry_fail(r, e, "'" STR_FMT "' is no expression: %s", STR_ARG(str_head(text, 120)),
                                  err.text);
        my = ad_new(r->symbols);
        for (size_t i = 0; i < r->part->attribute_count; i++)
                ad_set_boolean(my, symbols_intern(r->symbols, str_of(r->part->attributes[i].name)), true);
        expr_references(x, my, see_reference, m, &uses);
        ad_free(my);
        expr_free(x);
        return 0;
}

static bool string_is(struct reader *r, const char *attribute, const char *quoted)
{
        const struct form_attribute *a = form_get(r->part, str_of(attribute));

        return a && strcmp(a->text, quoted) == 0;
}

static void transfer_clause(struct reader *r, struct mentions *m, struct buf *out)
{
        bool yes = string_is(r, "ShouldTransferFiles", "\"YES\""),
             no = string_is(r, "ShouldTransferFiles", "\"NO\"");
        bool domain = mentioned(m, STR("FileSystemDomain"));
        bool transfer = mentions_any(m, STR("HasFileTransfer")) || mentioned(m, STR("HasJobTransferPlugins"));

        if (yes && !transfer)
                clause_add(out, "TARGET.HasFileTransfer");
        else if (no && !domain)
                clause_add(out, "(TARGET.FileSystemDomain == MY.FileSystemDomain)");
        else if (!yes && !no && !domain && !transfer && form_get(r->part, STR("FileSystemDomain")))
                clause_add(out,
                           "(TARGET.HasFileTransfer || (TARGET.FileSystemDomain == MY.FileSystemDomain))");
}

static bool is_made(struct str text)
{
        if (str_ends(text, STR("\""))) /* that of the string */
                text.n--;
        return environment_is_file(text);
}

/* Where its modules and its environment are, or can be made. A place that tells its conda environments must
 * have this one. */
static int environment_clauses(struct reader *r, struct mentions *m, struct buf *out)
{
        const struct form_attribute *env = form_get(r->part, STR("CondaEnv")),
                                    *python = form_get(r->part, STR("PythonEnv"));
        bool made = env && is_made(str_of(env->text));

        if ((env || python || form_get(r->part, STR("Modules"))) &&
            (form_get(r->part, STR("ContainerImage")) || form_get(r->part, STR("DockerImage")))) {
                reader_warn(r, (struct place){r->files[0], r->part->line},
                            "modules, conda_env and python_env are not used in a container");
                return 0;
        }
        if (env && python)
                return reader_fail(r, (struct place){r->files[0], r->part->line},
                                   "give conda_env or python_env, not both");
        if (form_get(r->part, STR("Modules")) && !mentioned(m, STR("HasModules")))
                clause_add(out, "TARGET.HasModules");
        if (python && !mentioned(m, STR("HasPythonEnv")))
                clause_add(out, "TARGET.HasPythonEnv");
        if (made && !mentioned(m, STR("HasCondaEnv")))
                clause_add(out, "TARGET.HasCondaEnv");
        if (env && !made && !mentioned(m, STR("HasConda")))
                clause_add(out, env->late || strchr(env->text, '/')
                                        ? "TARGET.HasConda"
                                        : "TARGET.HasConda && (TARGET.CondaEnvs is undefined || "
                                          "member(MY.CondaEnv, TARGET.CondaEnvs))");
        return 0;
}

static void platform_clauses(struct reader *r, struct mentions *m, struct buf *out)
{
        if (universe_wants_arch(r) && !mentioned(m, STR("Arch"))) {
                clause_add(out, "(TARGET.Arch == ");
                print_string(out, str_of(r->options->arch));
                buf_char(out, ')');
        }
        if (universe_wants_opsys(r) && !mentions_any(m, STR("OpSys"))) {
                clause_add(out, "(TARGET.OpSys == ");
                print_string(out, str_of(r->options->opsys));
                buf_char(out, ')');
        }
}

static int make_requirements(struct reader *r, struct mentions *m)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf all = {.max = CONDOR_VALUE_MAX};
        int rc = entry_get_expression(r, "requirements", &e);

        if (rc < 0)
                return rc;
        if (form_get(r->part, STR("Requirements"))) {
                if (rc > 0)
                        reader_warn(r, e.at, "+Requirements replaces requirements and all default clauses");
                return 0;
        }
        if (rc > 0) {
                rc = look_at(r, &e, m);
                if (rc)
                        return rc;
                buf_printf(&all, "(" STR_FMT ")", STR_ARG(buf_view(&e.text)));
        }
        platform_clauses(r, m, &all);
        e.late |= universe_clauses(r, mentioned, m, &all);
        e.late |= dataset_clauses(r, &all);
        resources_clauses(r, mentioned, m, &all);
        nodes_clauses(r, &all);
        rc = environment_clauses(r, m, &all);
        if (rc)
                return rc;
        transfer_clause(r, m, &all);
        e.keyword = "requirements";
        return attribute_expression(r, "Requirements", &e, buf_view(&all));
}

int places_make(struct reader *r)
{
        struct mentions m = {.symbols = r->symbols, .targets = map_new_nocase()};
        int rc = resources_make(r);

        if (!rc)
                rc = nodes_make(r);
        if (!rc)
                rc = make_requirements(r, &m);
        map_free(m.targets);
        return rc;
}
