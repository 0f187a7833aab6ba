#include "cli/condor/output.h"

#include "classad/print.h"
#include "cli/condor/ads.h"

#define FLUSH_BYTES 65536

void output_deinit(struct output *o)
{
        columns_deinit(&o->columns);
        symbols_free(o->symbols);
        buf_deinit(&o->text);
}

/* -format and -autoformat, in the order in which they were given. */
static int add_columns(struct output *o, const struct flags *f, struct err *err)
{
        int rc = 0;

        for (size_t i = 0; i < f->given_count && rc == 0; i++) {
                const struct flag_given *g = &f->given[i];

                if (strcmp(g->row->name, "format") == 0)
                        rc = columns_format(&o->columns, g->words[0], g->words[1], err);
                else if (strcmp(g->row->name, "autoformat") == 0 || strcmp(g->row->name, "af") == 0)
                        rc = columns_auto(&o->columns, g->colon, g->words, g->count, err);
        }
        return rc;
}

/* Words that HTCondor does not know mean the plain form to it, too. */
static enum output_form long_form(const struct flags *f)
{
        const struct flag_given *g;
        enum output_form form = OUTPUT_LONG;
        size_t at = 0;

        while ((g = flags_next(f, "long", &at)))
                form = !g->colon                        ? OUTPUT_LONG
                       : strcmp(g->colon, "json") == 0  ? OUTPUT_JSON
                       : strcmp(g->colon, "jsonl") == 0 ? OUTPUT_JSONL
                       : strcmp(g->colon, "xml") == 0   ? OUTPUT_XML
                       : strcmp(g->colon, "new") == 0   ? OUTPUT_NEW
                                                        : OUTPUT_LONG;
        return form;
}

int output_init(struct output *o, const struct flags *f, int64_t now_s, struct err *err)
{
        int rc;

        *o = (struct output){.symbols = symbols_new()};
        columns_init(&o->columns, o->symbols, now_s);
        rc = add_columns(o, f, err);
        o->only = str_of(flags_text(f, "attributes"));
        if (o->columns.count)
                o->form = OUTPUT_COLUMNS;
        else if (flags_has(f, "jsonl"))
                o->form = OUTPUT_JSONL;
        else if (flags_has(f, "json"))
                o->form = OUTPUT_JSON;
        else if (flags_has(f, "xml"))
                o->form = OUTPUT_XML;
        else if (flags_has(f, "long"))
                o->form = long_form(f);
        return rc;
}

void output_names(const struct output *o, struct buf *out)
{
        if (o->form == OUTPUT_COLUMNS)
                columns_names(&o->columns, out);
        else if (o->only.n)
                buf_str(out, o->only);
        else
                buf_char(out, '*');
}

static bool is_wanted(const struct output *o, struct str name)
{
        struct str rest = o->only, one;

        if (rest.n == 0)
                return true;
        while (str_cut(&rest, ',', &one))
                if (str_ieq(str_trim(one), name))
                        return true;
        return false;
}

static void print_json(struct output *o, struct view ad)
{
        bool lines = o->form == OUTPUT_JSONL, comma = false;
        struct view value;
        struct str key;
        size_t at = 0;

        if (!lines)
                buf_addz(&o->text, o->count ? ",\n" : "[\n");
        buf_addz(&o->text, lines ? "{" : "{\n");
        while (view_member(ad, &at, &key, &value)) {
                if (!is_wanted(o, key))
                        continue;
                buf_addz(&o->text, !comma ? "" : lines ? "," : ",\n");
                buf_printf(&o->text, "%s\"" STR_FMT "\":%s", lines ? "" : "  ", STR_ARG(key),
                           lines ? "" : " ");
                buf_str(&o->text, value.text);
                comma = true;
        }
        buf_addz(&o->text, lines ? "}\n" : "\n}\n");
}

static void print_long(struct output *o, const struct ad *ad)
{
        BUF_CLEANUP struct buf whole = {0};
        struct str rest, line, name;

        ad_print(&whole, ad, CLASSAD_OLD, false);
        rest = buf_view(&whole);
        while (str_cut(&rest, '\n', &line)) {
                name = str_head(line, (size_t)(str_find(line, '=') < 0 ? 0 : str_find(line, '=')));
                if (line.n && is_wanted(o, str_trim(name)))
                        buf_printf(&o->text, STR_FMT "\n", STR_ARG(line));
        }
        buf_char(&o->text, '\n');
}

static struct ad *wanted_of(struct output *o, const struct ad *ad)
{
        struct ad *some = ad_new(o->symbols);
        const struct expr *e;
        uint32_t at = 0;
        symbol name;

        while (ad_next(ad, &at, &name, &e))
                if (is_wanted(o, symbols_name(o->symbols, name))) {
                        ad_set_expr(some, name, e);
                        ad_set_spelling(some, name, ad_spelling(ad, name));
                }
        return some;
}

static void print_xml(struct output *o, const struct ad *ad)
{
        struct ad *some = wanted_of(o, ad);

        if (o->count == 0)
                buf_addz(&o->text, PRINT_XML_HEAD);
        ad_print_xml(&o->text, some, false);
        ad_free(some);
}

static void print_new(struct output *o, const struct ad *ad)
{
        struct ad *some = wanted_of(o, ad);

        buf_addz(&o->text, o->count ? ",\n" : "{\n");
        ad_print(&o->text, some, CLASSAD_NEW, false);
        buf_char(&o->text, '\n');
        ad_free(some);
}

static void print_columns(struct output *o, const struct ad *ad)
{
        BUF_CLEANUP struct buf id = {0};
        int64_t cluster = 0, proc = 0;

        eval_integer(&o->columns.eval, ad, NULL, symbols_intern(o->symbols, STR("ClusterId")), &cluster);
        eval_integer(&o->columns.eval, ad, NULL, symbols_intern(o->symbols, STR("ProcId")), &proc);
        buf_printf(&id, "%lld.%lld", (long long)cluster, (long long)proc);
        columns_row(&o->columns, ad, buf_z(&id), &o->text);
}

void output_ad(struct output *o, struct view json, const struct ad *ad)
{
        struct ad *own = NULL;

        if (!ad && o->form != OUTPUT_JSON && o->form != OUTPUT_JSONL)
                ad = own = ads_read(o->symbols, json);
        if (o->form == OUTPUT_COLUMNS)
                print_columns(o, ad);
        else if (o->form == OUTPUT_LONG)
                print_long(o, ad);
        else if (o->form == OUTPUT_XML)
                print_xml(o, ad);
        else if (o->form == OUTPUT_NEW)
                print_new(o, ad);
        else
                print_json(o, json);
        ad_free(own);
        o->count++;
        if (o->text.n > FLUSH_BYTES)
                cli_print(&o->text);
}

void output_end(struct output *o)
{
        if (o->form == OUTPUT_JSON)
                buf_addz(&o->text, o->count ? "]\n" : "[\n]\n");
        else if (o->form == OUTPUT_XML)
                buf_addz(&o->text, o->count ? PRINT_XML_FOOT : PRINT_XML_HEAD PRINT_XML_FOOT);
        else if (o->form == OUTPUT_NEW)
                buf_addz(&o->text, o->count ? "}\n" : "{\n}\n");
        else if (o->form == OUTPUT_COLUMNS)
                columns_end(&o->columns, &o->text);
        cli_print(&o->text);
}
