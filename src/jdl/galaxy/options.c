/* Selects the rows of a table that a parameter offers. The filters are applied in their order, as in
 * Galaxy ("filter" in the tool XML's documentation). A filter that compares with a value which the job
 * does not have keeps all rows. */
#include <errno.h>
#include <stdlib.h>

#include "jdl/galaxy/modules.h"
#include "jdl/galaxy/tool.h"

struct filter {
        struct tool *t;
        const struct xml *at;
        const struct tool_values *values;
        struct tool_table *table; /* its list of rows is replaced, and never modified */
        struct err *err;
};

static struct datum *new_rows(const struct filter *f)
{
        return datum_new(&f->t->arena, DATUM_LIST);
}

static int options_too_many(const struct filter *f)
{
        return tool_fail(f->at, f->err, "there are more than %u options, or %u MiB of them", DATUM_ITEMS_MAX,
                         TOOL_MEMORY_MAX >> 20);
}

/* Returns the field in the column that the filter names; NULL: the row has none. */
static struct str field(const struct filter *f, const struct datum *row, const char *column)
{
        const struct datum *v = tool_field(f->table, row, column);

        return v ? v->text : STR_NONE;
}

static const char *column_of(const struct filter *f)
{
        const char *column = xml_get(f->at, "column");
        int64_t i;

        if (!column ||
            (!datum_get(f->table->columns, str_of(column)) && str_to_i64(str_of(column), &i) != 0)) {
                tool_fail(f->at, f->err, "this filter needs the name or the index of a column");
                return NULL;
        }
        return column;
}

static bool keeps(const struct filter *f)
{
        return !xml_get(f->at, "keep") || tool_says(f->at, "keep");
}

/* ---- texts of a parameter, for comparison */

static void add_text(const struct filter *f, const struct datum *v, struct datum *to)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};

        if (datum_write(v, &b) && buf_check(&b) == 0)
                datum_add(&f->t->arena, to, datum_text(&f->t->arena, buf_view(&b)));
}

/* Adds the attribute "a.b" (NULL: the value itself) of a value, or of each value in a list or collection. */
static void add_values(const struct filter *f, const struct datum *v, const char *attribute, struct datum *to)
{
        struct str rest = str_of(attribute), part;

        if (v && v->kind == DATUM_LIST) {
                for (size_t i = 0; i < v->n; i++)
                        add_values(f, v->items[i], attribute, to);
                return;
        }
        while (v && rest.n && str_cut(&rest, '.', &part))
                v = datum_attribute(v, part);
        if (v && v->kind == DATUM_LIST)
                add_values(f, v, NULL, to);
        else if (v)
                add_text(f, v, to);
}

static bool has_text(const struct datum *texts, struct str s)
{
        for (size_t i = 0; i < texts->n; i++)
                if (str_eq(texts->items[i]->text, s))
                        return true;
        return false;
}

/* Returns whether a field matches: all of `texts` must be the field, or with multiple="true" be among its
 * parts. */
static bool fits(const struct filter *f, const struct datum *texts, struct str value)
{
        struct str separator = tool_attribute(f->at, "separator", ",");
        size_t found = 0;

        if (!tool_says(f->at, "multiple") || !separator.n)
                return has_text(texts, value);
        for (size_t i = 0; i < texts->n; i++) {
                struct str rest = value;
                bool is = false;

                for (ptrdiff_t at = 0; !is && at >= 0; rest = str_skip(rest, (size_t)at + separator.n)) {
                        at = str_search(rest, separator);
                        is = str_eq(at < 0 ? rest : str_head(rest, (size_t)at), texts->items[i]->text);
                        if (at < 0)
                                break;
                }
                found += is;
        }
        return found == texts->n;
}

/* Keeps the rows whose field in a column is among the texts, or is not. */
static int keep_rows(struct filter *f, const char *column, const struct datum *texts, bool keep)
{
        struct datum *rows = new_rows(f);

        for (size_t i = 0; i < f->table->rows->n; i++) {
                struct datum *row = f->table->rows->items[i];

                if (fits(f, texts, field(f, row, column)) == keep)
                        datum_add(&f->t->arena, rows, row);
        }
        f->table->rows = rows;
        return 0;
}

/* ---- the filters */

static int static_value(struct filter *f)
{
        const char *column = column_of(f);
        struct datum *texts = new_rows(f);

        if (!column)
                return -EINVAL;
        datum_add(&f->t->arena, texts, datum_text(&f->t->arena, tool_attribute(f->at, "value", "")));
        return keep_rows(f, column, texts, keeps(f));
}

static int regexp(struct filter *f)
{
        const char *column = column_of(f);
        struct datum *rows = new_rows(f), *is;
        int rc = column ? 0 : -EINVAL;

        for (size_t i = 0; i < f->table->rows->n && rc == 0; i++) {
                struct datum *row = f->table->rows->items[i], *arguments = new_rows(f);

                datum_add(&f->t->arena, arguments,
                          datum_text(&f->t->arena, tool_attribute(f->at, "value", "")));
                datum_add(&f->t->arena, arguments, datum_text(&f->t->arena, field(f, row, column)));
                rc = module_match(&f->t->x, arguments, &is, f->err);
                if (rc != 0)
                        return tool_fail(f->at, f->err, "the regular expression is not supported");
                if (datum_true(is) == keeps(f))
                        datum_add(&f->t->arena, rows, row);
        }
        f->table->rows = rows;
        return rc;
}

/* Filters by the metadata of a dataset; without it, or with the genome "?", keeps all rows. */
static int data_meta(struct filter *f)
{
        const char *column = column_of(f), *key = xml_get(f->at, "key");
        struct datum *texts = new_rows(f), *known = new_rows(f);
        BUF_CLEANUP struct buf attribute = {0};

        if (!column)
                return -EINVAL;
        if (!key || !xml_get(f->at, "ref"))
                return tool_fail(f->at, f->err, "this filter needs a ref and a key");
        buf_printf(&attribute, "metadata.%s", key);
        add_values(f, f->values->get(f->values->arg, str_of(xml_get(f->at, "ref"))), buf_z(&attribute),
                   texts);
        for (size_t i = 0; i < texts->n; i++)
                if (texts->items[i]->text.n && !str_eqz(texts->items[i]->text, "?"))
                        datum_add(&f->t->arena, known, texts->items[i]);
        return known->n ? keep_rows(f, column, known, true) : 0;
}

static int param_value(struct filter *f)
{
        const char *column = column_of(f);
        struct datum *texts = new_rows(f);

        if (!column)
                return -EINVAL;
        add_values(f, f->values->get(f->values->arg, tool_attribute(f->at, "ref", "")),
                   xml_get(f->at, "ref_attribute"), texts);
        return keep_rows(f, column, texts, keeps(f));
}

static int remove_value(struct filter *f)
{
        const char *value = xml_get(f->at, "value"), *ref = xml_get(f->at, "ref"),
                   *meta = xml_get(f->at, "meta_ref");
        struct datum *texts = new_rows(f);
        BUF_CLEANUP struct buf attribute = {0};

        if (meta && xml_get(f->at, "key"))
                buf_printf(&attribute, "metadata.%s", xml_get(f->at, "key"));
        if (value)
                datum_add(&f->t->arena, texts, datum_text(&f->t->arena, str_of(value)));
        else if (ref || attribute.n)
                add_values(f, f->values->get(f->values->arg, str_of(ref ? ref : meta)),
                           ref ? NULL : buf_z(&attribute), texts);
        else
                return tool_fail(f->at, f->err, "this filter needs a value, a ref, or a meta_ref and a key");
        return texts->n ? keep_rows(f, "value", texts, false) : 0;
}

static int unique_value(struct filter *f)
{
        const char *column = column_of(f);
        struct datum *rows = new_rows(f), *seen = datum_new(&f->t->arena, DATUM_MAP);

        if (!column)
                return -EINVAL;
        if (f->table->rows->n > 5000)
                return tool_fail(f->at, f->err, "unique_value of more than 5000 options");
        for (size_t i = 0; i < f->table->rows->n; i++) {
                struct datum *row = f->table->rows->items[i];

                if (datum_get(seen, field(f, row, column)))
                        continue;
                datum_put(&f->t->arena, seen, field(f, row, column), row);
                datum_add(&f->t->arena, rows, row);
        }
        f->table->rows = rows;
        return 0;
}

/* Returns a copy of a row with one field replaced. */
static struct datum *row_with(const struct filter *f, const struct datum *row, int64_t at, struct str value)
{
        struct datum *copy = datum_new(&f->t->arena, DATUM_LIST);

        for (size_t i = 0; i < row->n; i++)
                datum_add(&f->t->arena, copy,
                          (int64_t)i == at ? datum_text(&f->t->arena, value) : row->items[i]);
        return copy;
}

/* Replaces a row by one row for each part of a field. */
static int multiple_splitter(struct filter *f)
{
        const char *column = column_of(f);
        struct str separator = tool_attribute(f->at, "separator", ",");
        struct datum *rows = new_rows(f);
        const struct datum *named;
        int64_t at;

        if (!column || !separator.n)
                return column ? tool_fail(f->at, f->err, "the separator is empty") : -EINVAL;
        named = datum_get(f->table->columns, str_of(column));
        if (named)
                at = named->integer;
        else
                str_to_i64(str_of(column), &at);
        for (size_t i = 0; i < f->table->rows->n; i++) {
                struct str rest = field(f, f->table->rows->items[i], column);

                for (ptrdiff_t end = 0; end >= 0; rest = str_skip(rest, (size_t)end + separator.n)) {
                        struct str part;

                        end = str_search(rest, separator);
                        part = end < 0 ? rest : str_head(rest, (size_t)end);
                        if (f->t->arena.used > TOOL_MEMORY_MAX ||
                            !datum_add(&f->t->arena, rows, row_with(f, f->table->rows->items[i], at, part)))
                                return options_too_many(f);
                        if (end < 0)
                                break;
                }
        }
        f->table->rows = rows;
        return 0;
}

static int add_value(struct filter *f)
{
        struct str value = tool_attribute(f->at, "value", "");
        const struct datum *columns = f->table->columns, *name = datum_get(columns, STR("name")),
                           *at = datum_get(columns, STR("value"));
        struct datum *row = datum_new(&f->t->arena, DATUM_LIST), *rows = new_rows(f);
        uint64_t index = f->table->rows->n;
        int64_t width = 0;

        if (xml_get(f->at, "index") && str_to_u64(str_of(xml_get(f->at, "index")), &index) != 0)
                return tool_fail(f->at, f->err, "the index '%s' is no number", xml_get(f->at, "index"));
        for (size_t i = 0; i < columns->n; i++)
                width = columns->items[i]->integer >= width ? columns->items[i]->integer + 1 : width;
        for (int64_t i = 0; i < width; i++)
                datum_add(&f->t->arena, row,
                          datum_text(&f->t->arena, i == at->integer ? value
                                                   : i == name->integer
                                                           ? tool_attribute(f->at, "name", value.p)
                                                           : STR_NONE));
        for (size_t i = 0; i <= f->table->rows->n; i++) {
                if (i == (index < f->table->rows->n ? index : f->table->rows->n) &&
                    !datum_add(&f->t->arena, rows, row))
                        return options_too_many(f);
                if (i < f->table->rows->n && !datum_add(&f->t->arena, rows, f->table->rows->items[i]))
                        return options_too_many(f);
        }
        f->table->rows = rows;
        return 0;
}

struct sorted {
        struct str key;
        size_t before; /* previous position, which keeps the sort stable */
        struct datum *row;
};

static int compare_rows(const void *a, const void *b)
{
        const struct sorted *x = a, *y = b;
        int order = str_cmp(x->key, y->key);

        return order ? order : x->before < y->before ? -1 : 1;
}

static int compare_reversed(const void *a, const void *b)
{
        const struct sorted *x = a, *y = b;
        int order = str_cmp(y->key, x->key);

        return order ? order : x->before < y->before ? -1 : 1;
}

static int sort_by(struct filter *f)
{
        const char *column = column_of(f);
        size_t n = f->table->rows->n;
        struct datum *rows = new_rows(f);
        struct sorted *all;

        if (!column)
                return -EINVAL;
        all = arena_alloc(&f->t->arena, (n + 1) * sizeof(*all));
        for (size_t i = 0; i < n; i++) {
                struct datum *row = f->table->rows->items[i];

                all[i] = (struct sorted){field(f, row, column), i, row};
        }
        qsort(all, n, sizeof(*all), tool_says(f->at, "reverse_sort_order") ? compare_reversed : compare_rows);
        for (size_t i = 0; i < n; i++)
                datum_add(&f->t->arena, rows, all[i].row);
        f->table->rows = rows;
        return 0;
}

static int apply(struct filter *f)
{
        static const struct {
                const char *type;
                int (*apply)(struct filter *);
        } filters[] = {{"static_value", static_value},
                       {"regexp", regexp},
                       {"data_meta", data_meta},
                       {"param_value", param_value},
                       {"remove_value", remove_value},
                       {"unique_value", unique_value},
                       {"add_value", add_value},
                       {"multiple_splitter", multiple_splitter},
                       {"sort_by", sort_by}};
        struct str type = str_trim(tool_attribute(f->at, "type", ""));

        f->t->rows_seen += f->table->rows->n;
        if (f->t->rows_seen > TOOL_ROWS_MAX)
                return tool_fail(f->at, f->err, "filters look at more than %u options", TOOL_ROWS_MAX);
        for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++)
                if (str_eqz(type, filters[i].type))
                        return filters[i].apply(f);
        return tool_fail(f->at, f->err, "a filter of the type '" STR_FMT "' is not supported", STR_ARG(type));
}

int tool_options(struct tool *t, const struct xml *param, const struct tool_values *values,
                 struct tool_table *ret, struct err *err)
{
        const struct xml *options = xml_child(param, "options");
        int rc = 0;

        *ret = (struct tool_table){NULL, NULL};
        if (options)
                rc = tool_table(t, options, ret, err);
        for (const struct xml *x = xml_child(options, "filter"); x && rc == 0 && ret->rows;
             x = xml_next(x, "filter"))
                rc = apply(&(struct filter){t, x, values, ret, err});
        return rc;
}
