/* What a place must have: the sizes asked for, and the requirements with their default clauses.
 *
 * As condor_submit: Arch, OpSys and the clauses about file transfer are left out when the user's own
 * requirements mention the attribute. The three sizes are always compared, for the place takes them off what
 * it has. */
#include <errno.h>

#include "classad/expr.h"
#include "jdl/condor/reader.h"

/* A number with a unit at its end. Gives the part before the unit and the unit's bytes; false when there is
 * none. */
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

/* A plain number with an optional unit, in units of `base` bytes, rounded up. false: it is something else. */
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

static int convert_mib(struct str text, struct buf *out, struct err *err)
{
        (void)err;
        return convert_size(text, 1 << 20, out);
}

static int convert_kib(struct str text, struct buf *out, struct err *err)
{
        (void)err;
        return convert_size(text, 1 << 10, out);
}

/* A late size with its unit behind the macro, $(x)G: the unit becomes a factor. */
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

/* Whether a row's value has a unit of its own. */
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

static int size(struct reader *r, const char *keyword, const char *attribute, uint64_t base)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf text = {.max = CONDOR_VALUE_MAX}, column = {0};
        bool done = false;
        uint64_t bytes;
        struct str s;
        int rc = entry_get(r, keyword, &e);

        if (rc <= 0 || form_get(r->part, str_of(attribute)))
                return rc;
        s = buf_view(&e.text);
        if (str_ieqz(s, "undefined"))
                return 0;
        if (!e.late) {
                convert_size(s, base, &text);
        } else if (cut_unit(&s, &bytes)) {
                scale_late(buf_view(&e.text), base, &text);
        } else if (rows_have_units(r, &e)) {
                buf_printf(&column, "Drover%s", attribute);
                rc = derive_column(r, &e, buf_z(&column), base == 1024 ? convert_kib : convert_mib, &done);
                if (rc < 0)
                        return rc;
                buf_printf(&text, done ? "$(%s)" : "%s", done ? buf_z(&column) : buf_z(&e.text));
        } else {
                buf_str(&text, s);
        }
        return attribute_expression(r, attribute, &e, buf_view(&text));
}

struct mentions {
        struct symbols *symbols;
        bool arch, opsys, transfer, domain;
};

static void see_reference(void *arg, symbol name, bool target)
{
        struct mentions *m = arg;
        struct str n = symbols_name(m->symbols, name);

        if (!target)
                return;
        m->arch |= str_ieqz(n, "Arch");
        m->opsys |= str_istarts(n, STR("OpSys"));
        m->transfer |= str_istarts(n, STR("HasFileTransfer")) || str_ieqz(n, "HasJobTransferPlugins");
        m->domain |= str_ieqz(n, "FileSystemDomain");
}

/* What the user's requirements mention, as they are for the first job. */
static int look_at(struct reader *r, const struct entry *e, struct mentions *m)
{
        BUF_CLEANUP struct buf value = {.max = CONDOR_VALUE_MAX};
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

static void clause(struct buf *out, const char *text)
{
        if (out->n)
                buf_addz(out, " && ");
        buf_addz(out, text);
}

static bool string_is(struct reader *r, const char *attribute, const char *quoted)
{
        const struct form_attribute *a = form_get(r->part, str_of(attribute));

        return a && strcmp(a->text, quoted) == 0;
}

static void transfer_clause(struct reader *r, const struct mentions *m, struct buf *out)
{
        bool yes = string_is(r, "ShouldTransferFiles", "\"YES\""),
             no = string_is(r, "ShouldTransferFiles", "\"NO\"");

        if (yes && !m->transfer)
                clause(out, "TARGET.HasFileTransfer");
        else if (no && !m->domain)
                clause(out, "(TARGET.FileSystemDomain == MY.FileSystemDomain)");
        else if (!yes && !no && !m->domain && !m->transfer && form_get(r->part, STR("FileSystemDomain")))
                clause(out, "(TARGET.HasFileTransfer || (TARGET.FileSystemDomain == MY.FileSystemDomain))");
}

static int requirements(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        BUF_CLEANUP struct buf all = {.max = CONDOR_VALUE_MAX};
        struct mentions m = {.symbols = r->symbols};
        int rc = entry_get(r, "requirements", &e);

        if (rc < 0)
                return rc;
        if (form_get(r->part, STR("Requirements"))) {
                if (rc > 0)
                        reader_warn(r, e.at, "+Requirements replaces requirements and all default clauses");
                return 0;
        }
        if (rc > 0) {
                rc = look_at(r, &e, &m);
                if (rc)
                        return rc;
                buf_printf(&all, "(" STR_FMT ")", STR_ARG(buf_view(&e.text)));
        }
        if (!m.arch) {
                clause(&all, "(TARGET.Arch == ");
                print_string(&all, str_of(r->options->arch));
                buf_char(&all, ')');
        }
        if (!m.opsys) {
                clause(&all, "(TARGET.OpSys == ");
                print_string(&all, str_of(r->options->opsys));
                buf_char(&all, ')');
        }
        if (form_get(r->part, STR("RequestCpus")))
                clause(&all, "(TARGET.Cpus >= RequestCpus)");
        if (form_get(r->part, STR("RequestMemory")))
                clause(&all, "(TARGET.Memory >= RequestMemory)");
        if (form_get(r->part, STR("RequestDisk")))
                clause(&all, "(TARGET.Disk >= RequestDisk)");
        transfer_clause(r, &m, &all);
        e.keyword = "requirements";
        return attribute_expression(r, "Requirements", &e, buf_view(&all));
}

int places_make(struct reader *r)
{
        ENTRY_CLEANUP struct entry e = {0};
        int rc = entry_get(r, "request_cpus", &e);

        if (rc > 0 && !str_ieqz(buf_view(&e.text), "undefined") && !form_get(r->part, STR("RequestCpus")))
                rc = attribute_expression(r, "RequestCpus", &e, buf_view(&e.text));
        if (rc == 0)
                attribute_default(r, "RequestCpus", "1");
        if (rc >= 0)
                rc = size(r, "request_memory", "RequestMemory", 1 << 20);
        if (rc >= 0)
                rc = size(r, "request_disk", "RequestDisk", 1 << 10);
        return rc < 0 ? rc : requirements(r);
}
