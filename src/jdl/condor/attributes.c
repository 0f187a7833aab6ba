/* Makes the attributes of one part from settings, chapter by chapter. */
#include "classad/sense.h"
#include "jdl/condor/reader.h"

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

/* Keywords that act on the request, and leave no attribute of their own: statistics know them by this one. */
static void keyword_names(struct reader *r)
{
        BUF_CLEANUP struct buf text = {0};

        for (size_t i = 0; i < r->setting_count; i++) {
                const struct setting *s = r->settings[i];
                const struct keyword *k = s->builtin || !s->used ? NULL : keyword_find(str_of(s->name));

                if (k && k->effect == KEYWORD_ACTS && !k->attribute)
                        buf_printf(&text, "%s%s", text.n ? " " : "", k->name);
        }
        if (text.n)
                attribute_default_string(r, "SubmitKeywords", buf_z(&text));
}

int attributes_make(struct reader *r)
{
        int rc = other_keywords(r, false);

        if (!rc)
                rc = universe_make(r);
        if (!rc)
                rc = gangs_make(r);
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
        if (!rc)
                keyword_names(r);
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
