/* Quantities that a job requests of a place: cores, memory, disk, GPUs, and any other resource that places
 * declare. As in condor_submit, request_NAME sets RequestNAME, and the place must have as many units of
 * NAME; properties of GPUs are looked up in the place's list AvailableGPUs. */
#include <errno.h>

#include "jdl/condor/reader.h"

/* Splits a number from the unit at its end. Gives the part before the unit and the unit's bytes; returns
 * false if there is no unit. */
static bool cut_unit(struct str *text, uint64_t *ret_bytes)
{
        static const char letters[] = "KMGT";
        struct str s = *text;
        const char *at;
        bool byte = s.n && (s.p[s.n - 1] | 32) == 'b';

        if (byte)
                s.n--;
        if (s.n && s.p[s.n - 1] == 'i') /* KiB */
                s.n--;
        at = s.n ? strchr(letters, s.p[s.n - 1] & ~32) : NULL;
        if (at && *at)
                s.n--;
        else if (!byte)
                return false;
        s = str_trim(s);
        if (s.n == 0 || !strchr("0123456789.)", s.p[s.n - 1]))
                return false;
        if (!at || !*at) {
                *text = s;
                *ret_bytes = 1;
                return true;
        }
        *text = s;
        *ret_bytes = 1024;
        for (; at > letters; at--)
                *ret_bytes *= 1024;
        return true;
}

/* Reads a plain number with an optional unit, in units of `base` bytes, rounded up. Returns false for other
 * text. */
static bool plain_size(struct str text, uint64_t base, uint64_t *ret)
{
        uint64_t bytes = base;
        double v;

        text = str_trim(text);
        cut_unit(&text, &bytes);
        if (text.n == 0 || !strchr("0123456789.", text.p[0]) || str_to_double(text, &v) || v < 0 ||
            v * (double)bytes > 9e18)
                return false;
        v = v * (double)bytes / (double)base;
        *ret = (uint64_t)v;
        if ((double)*ret < v)
                ++*ret;
        return true;
}

static int convert_size(struct str text, uint64_t base, struct buf *out)
{
        uint64_t v;

        if (plain_size(text, base, &v))
                buf_printf(out, "%llu", (unsigned long long)v);
        else
                buf_str(out, text);
        return 0;
}

static int convert_mib(const struct reader *r, struct str text, struct buf *out, struct err *err)
{
        (void)r;
        (void)err;
        return convert_size(text, 1 << 20, out);
}

static int convert_kib(const struct reader *r, struct str text, struct buf *out, struct err *err)
{
        (void)r;
        (void)err;
        return convert_size(text, 1 << 10, out);
}

/* Scales a late size with its unit after the macro, $(x)G: the unit becomes a factor. */
static void scale_late(struct str text, uint64_t base, struct buf *out)
{
        uint64_t bytes;

        if (!cut_unit(&text, &bytes) || bytes == base)
                buf_str(out, text);
        else if (bytes > base)
                buf_printf(out, "(" STR_FMT ") * %llu", STR_ARG(text), (unsigned long long)(bytes / base));
        else
                buf_printf(out, "((" STR_FMT ") + %llu) / %llu", STR_ARG(text),
                           (unsigned long long)(base / bytes - 1), (unsigned long long)(base / bytes));
}

/* Returns whether some row's value has a unit of its own. */
static bool rows_have_units(struct reader *r, const struct entry *e)
{
        struct sample s;

        sample_start(&s, r, false);
        while (sample_next(&s)) {
                BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
                struct str text;
                uint64_t bytes;

                if (sample_expand(&s, buf_view(&e->text), &value, NULL, NULL))
                        return false;
                text = str_trim(buf_view(&value));
                if (cut_unit(&text, &bytes))
                        return true;
                if (r->part->variable_count == 0)
                        return false;
        }
        return false;
}

/* HTCondor takes request_memory = 1G, 2G, 4G: amounts to go through when a job has had too little. No
 * expression has a comma that is in no brackets. */
static bool is_list(struct str text)
{
        for (size_t i = 0; i < text.n; i++)
                if (strchr("([{\"'", text.p[i]))
                        return false;
        return str_find(text, ',') >= 0;
}

/* entry_get_expression, where a list is cut to its first value, with a warning. */
static int entry_get_amount(struct reader *r, const char *keyword, struct entry *ret)
{
        int rc = entry_get_expression(r, keyword, ret);

        if (rc > 0 && is_list(buf_view(&ret->text))) {
                reader_warn(r, ret->at,
                            "%s: the first value of the list is used, whatever a job turns out to need",
                            ret->keyword);
                buf_truncate(&ret->text, (size_t)str_find(buf_view(&ret->text), ','));
        }
        return rc;
}

static int request_size(struct reader *r, const char *keyword, const char *attribute, uint64_t base)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf text = {.max = CONDOR_VALUE_MAX}, column = {0};
        bool done = false;
        uint64_t bytes;
        struct str s;
        int rc = entry_get_amount(r, keyword, &e);

        if (rc <= 0 || form_get(r->part, str_of(attribute)))
                return rc;
        s = str_trim(buf_view(&e.text));
        if (str_ieqz(s, "undefined"))
                return 0;
        if (!e.late) {
                convert_size(s, base, &text);
        } else if (cut_unit(&s, &bytes)) {
                scale_late(buf_view(&e.text), base, &text);
        } else if (rows_have_units(r, &e)) {
                buf_printf(&column, "Drover%s", attribute);
                rc = derive_column(r, &e, buf_z(&column), false, base == 1024 ? convert_kib : convert_mib,
                                   &done);
                if (rc < 0)
                        return rc;
                buf_printf(&text, done ? "$(%s)" : "%s", done ? buf_z(&column) : buf_z(&e.text));
        } else {
                buf_str(&text, s);
        }
        return attribute_expression(r, attribute, &e, buf_view(&text));
}

/* Some name after request_ that is no keyword of its own: a resource that only places know. */
static bool is_custom(struct str name)
{
        const struct keyword *k = keyword_find(name);

        return k && strcmp(k->name, "request_*") == 0 && name.n > strlen("request_");
}

static int custom(struct reader *r, const char *keyword)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf attribute = {0};
        const struct keyword *near = keyword_near(str_of(keyword));
        uint64_t units;
        int rc = entry_get_amount(r, keyword, &e);

        if (rc <= 0 || str_ieqz(buf_view(&e.text), "undefined"))
                return rc;
        buf_printf(&attribute, "Request%s", keyword + strlen("request_"));
        if (near && !str_istarts(str_of(near->name), STR("request_")))
                near = NULL;
        if (near && str_to_u64(buf_view(&e.text), &units) != 0)
                return reader_fail(r, e.at, "unknown keyword %s; did you mean %s?", keyword, near->name);
        if (near)
                reader_warn(r, e.at,
                            "%s asks for units of a resource that a place must declare; did you mean %s?",
                            keyword, near->name);
        if (form_get(r->part, buf_view(&attribute)))
                return 0;
        return attribute_expression(r, buf_z(&attribute), &e, buf_view(&e.text));
}

static int customs(struct reader *r)
{
        int rc = 0;

        for (size_t i = 0; rc >= 0 && i < r->setting_count; i++)
                if (!r->settings[i]->builtin && is_custom(str_of(r->settings[i]->name)))
                        rc = custom(r, r->settings[i]->name);
        for (size_t i = 0; rc >= 0 && i < r->part->variable_count; i++)
                if (is_custom(str_of(r->part->variables[i])) &&
                    !settings_get(r, str_of(r->part->variables[i])))
                        rc = custom(r, r->part->variables[i]);
        return rc;
}

/* 12.1 is the runtime 12010; a whole number stands as it is. */
static int convert_runtime(const struct reader *r, struct str text, struct buf *out, struct err *err)
{
        (void)r;
        int64_t whole;
        double version;

        (void)err;
        if (str_to_i64(text, &whole) == 0 && whole >= 1000)
                buf_str(out, text);
        else if (str_to_double(text, &version) == 0 && version >= 0 && version < 1000)
                buf_printf(out, "%lld", (long long)(version * 100 + 0.5) * 10);
        else
                buf_str(out, text);
        return 0;
}

static int convert_nothing(const struct reader *r, struct str text, struct buf *out, struct err *err)
{
        (void)r;
        (void)err;
        buf_str(out, text);
        return 0;
}

/* Adds a condition on each GPU to `all`. */
static int gpu_condition(struct reader *r, const char *keyword, const char *condition, derive_fn *convert,
                         struct buf *all, struct entry *ret_last)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
        int rc = entry_get_expression(r, keyword, &e);

        if (rc <= 0)
                return rc;
        if (!e.late)
                convert(r, buf_view(&e.text), &value, NULL);
        else
                buf_str(&value, buf_view(&e.text));
        buf_printf(all, "%s%s(" STR_FMT ")", all->n ? " && " : "", condition, STR_ARG(buf_view(&value)));
        ret_last->at = e.at;
        ret_last->late |= e.late;
        return 0;
}

static int gpus(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0}, require = {0};
        BUF_CLEANUP struct buf all = {.max = CONDOR_VALUE_MAX};
        int rc = entry_get_amount(r, "request_gpus", &e);

        if (rc > 0 && !str_ieqz(buf_view(&e.text), "undefined") && !form_get(r->part, STR("RequestGPUs")))
                rc = attribute_expression(r, "RequestGPUs", &e, buf_view(&e.text));
        if (rc >= 0)
                rc = entry_get_expression(r, "require_gpus", &require);
        if (rc > 0)
                rc = attribute_expression(r, "RequireGPUs", &require, buf_view(&require.text));
        if (rc >= 0 && require.text.n)
                buf_printf(&all, "(" STR_FMT ")", STR_ARG(buf_view(&require.text)));
        if (rc >= 0)
                rc = gpu_condition(r, "gpus_minimum_capability", "Capability >= ", convert_nothing, &all,
                                   &require);
        if (rc >= 0)
                rc = gpu_condition(r, "gpus_maximum_capability", "Capability <= ", convert_nothing, &all,
                                   &require);
        if (rc >= 0)
                rc = gpu_condition(r, "gpus_minimum_memory", "GlobalMemoryMb >= ", convert_mib, &all,
                                   &require);
        if (rc >= 0)
                rc = gpu_condition(r, "gpus_minimum_runtime", "MaxSupportedVersion >= ", convert_runtime,
                                   &all, &require);
        if (rc < 0 || all.n == 0)
                return rc;
        require.keyword = "require_gpus";
        if (!form_get(r->part, STR("RequestGPUs")))
                return entry_fail(r, &require,
                                  "it says what GPUs must be like, and none is requested; add "
                                  "request_gpus = 1");
        return attribute_expression(r, "RequireGPUs", &require, buf_view(&all));
}

static void see_measured(void *arg, symbol name, bool target)
{
        static const char *const names[] = {"DiskUsage", "ImageSize", "ExecutableSize"};
        struct reader *r = arg;

        for (size_t i = 0; !target && i < 3; i++)
                if (str_ieqz(symbols_name(r->symbols, name), names[i]))
                        attribute_default(r, names[i], "1");
}

/* A request may refer to what HTCondor measures at submit, in KiB: RequestDisk = DiskUsage. Nothing is
 * measured here, so it is the least that HTCondor gives; undefined, no place would ever fit. */
static void measured(struct reader *r, const char *request)
{
        const struct form_attribute *a = form_get(r->part, str_of(request));
        struct expr_uses uses;
        struct expr *x = NULL;

        if (a && !a->late && expr_parse(r->symbols, str_of(a->text), &x, NULL) == 0)
                expr_references(x, NULL, see_measured, r, &uses);
        expr_free(x);
}

int resources_make(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get_amount(r, "request_cpus", &e);

        if (rc > 0 && !str_ieqz(buf_view(&e.text), "undefined") && !form_get(r->part, STR("RequestCpus")))
                rc = attribute_expression(r, "RequestCpus", &e, buf_view(&e.text));
        if (rc == 0 && str_eqz(buf_view(&e.text), "0"))
                reader_warn(r, e.at, "%s: 0 counts as 1", e.keyword);
        if (rc == 0)
                attribute_default(r, "RequestCpus", "1");
        if (rc >= 0)
                rc = request_size(r, "request_memory", "RequestMemory", 1 << 20);
        if (rc >= 0)
                rc = request_size(r, "request_disk", "RequestDisk", 1 << 10);
        if (rc >= 0)
                rc = gpus(r);
        if (rc >= 0)
                rc = customs(r);
        if (rc >= 0) {
                measured(r, "RequestMemory");
                measured(r, "RequestDisk");
        }
        return rc < 0 ? rc : 0;
}

/* A request of nothing compares nothing. */
static bool asks_nothing(const struct form_attribute *a)
{
        double v;

        return !a->late && (str_ieqz(str_of(a->text), "undefined") || strcmp(a->text, "\"\"") == 0 ||
                            (str_to_double(str_of(a->text), &v) == 0 && v <= 0));
}

void resources_clauses(struct reader *r, bool (*mentioned)(void *arg, struct str name), void *arg,
                       struct buf *out)
{
        static const char *const sized[] = {"Cpus", "Memory", "Disk"};

        for (size_t i = 0; i < 3; i++) {
                BUF_CLEANUP struct buf request = {0};

                buf_printf(&request, "Request%s", sized[i]);
                if (form_get(r->part, buf_view(&request)))
                        clause_add(out, "(TARGET.%s >= Request%s)", sized[i], sized[i]);
        }
        for (size_t i = 0; i < r->part->attribute_count; i++) {
                const struct form_attribute *a = &r->part->attributes[i];
                const char *tag = a->name + strlen("Request");
                BUF_CLEANUP struct buf require = {0};

                if (!str_istarts(str_of(a->name), STR("Request")) || strlen(tag) < 2 || tag[0] == '_' ||
                    str_ieqz(str_of(tag), "Cpus") || str_ieqz(str_of(tag), "Memory") ||
                    str_ieqz(str_of(tag), "Disk") || asks_nothing(a) || mentioned(arg, str_of(tag)))
                        continue;
                buf_printf(&require, "Require%s", tag);
                if (form_get(r->part, buf_view(&require)))
                        clause_add(out, "(countMatches(MY.Require%s, TARGET.Available%s) >= Request%s)", tag,
                                   tag, tag);
                else if (a->text[0] == '"')
                        clause_add(out, "regexp(Request%s, TARGET.%s)", tag, tag);
                else
                        clause_add(out, "(TARGET.%s >= Request%s)", tag, tag);
        }
}
