/* Options from data tables and files: rows as they are read, the filters, and what is refused. Files are in
 * memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jdl/galaxy/tool.h"

#define TABLE(columns, files) "<tables><table name='t'>" columns files "</table></tables>"
#define COLUMNS               "<columns>value, name, kind</columns>"
#define ROWS                  "b\tBeta\tx,y\na\tAlpha\tx\nc\tGamma\tz\n"

struct files {
        const char *path, *text;
};

static int read_file(void *arg, const char *path, struct buf *ret)
{
        for (const struct files *f = arg; f->path; f++)
                if (strcmp(f->path, path) == 0) {
                        buf_addz(ret, f->text);
                        return 0;
                }
        return -ENOENT;
}

static struct datum *value_of(const void *arg, struct str name)
{
        return datum_get(arg, name);
}

struct fixture {
        struct form_world world;
        struct form warnings;
        struct tool tool;
        struct tool_values values;
        struct xml *param;
};

static void begin(struct fixture *f, const struct files *files, const char *param)
{
        struct datum *input, *metadata;

        *f = (struct fixture){.world = {.arg = (void *)files, .read_file = read_file, .cwd = "/home/ann"}};
        form_init(&f->warnings);
        tool_init(&f->tool, &f->world, "tools/t.xml", &f->warnings);
        f->values = (struct tool_values){value_of, f->tool.x.names};
        input = datum_new(&f->tool.arena, DATUM_MAP);
        metadata = datum_new(&f->tool.arena, DATUM_MAP);
        datum_put(&f->tool.arena, metadata, STR("dbkey"), datum_text(&f->tool.arena, STR("x")));
        datum_put(&f->tool.arena, metadata, STR("other"), datum_text(&f->tool.arena, STR("?")));
        datum_put(&f->tool.arena, input, STR("metadata"), metadata);
        datum_put(&f->tool.arena, input, STR("ext"), datum_text(&f->tool.arena, STR("z")));
        datum_put(&f->tool.arena, f->tool.x.names, STR("input"), input);
        assert_int_equal(xml_parse("t.xml", str_of(param), &f->param, NULL), 0);
}

static void end(struct fixture *f)
{
        xml_free(f->param);
        tool_deinit(&f->tool);
        form_deinit(&f->warnings);
}

/* The values that a parameter may choose from, each followed by a blank. */
static void offers_of(const struct files *files, const char *param, const char *column, const char *want)
{
        BUF_CLEANUP struct buf got = {0};
        struct tool_table rows;
        struct fixture f;
        struct err err = {""};

        begin(&f, files, param);
        if (tool_options(&f.tool, f.param, &f.values, &rows, &err) != 0)
                fail_msg("%s: %s", param, err.text);
        for (size_t i = 0; rows.rows && i < rows.rows->n; i++)
                buf_printf(&got, STR_FMT " ", STR_ARG(tool_field(&rows, rows.rows->items[i], column)->text));
        assert_string_equal(rows.rows ? buf_z(&got) : "unknown", want);
        end(&f);
}

static void offers(const char *filters, const char *want)
{
        static const struct files files[] = {
                {"tools/tool_data_table_conf.xml", TABLE(COLUMNS, "<file path='t.loc'/>")},
                {"tools/t.loc", ROWS},
                {NULL, NULL}};
        BUF_CLEANUP struct buf param = {0};

        buf_printf(&param, "<param><options from_data_table='t'>%s</options></param>", filters);
        offers_of(files, buf_z(&param), "value", want);
}

static void refused(const struct files *files, const char *param, const char *why)
{
        struct tool_table rows;
        struct fixture f;
        struct err err = {""};

        begin(&f, files, param);
        assert_int_not_equal(tool_options(&f.tool, f.param, &f.values, &rows, &err), 0);
        if (!strstr(err.text, why))
                fail_msg("'%s' is not in '%s'", why, err.text);
        end(&f);
}

static void test_filters(void **state)
{
        (void)state;
        offers("", "b a c ");
        offers("<filter type='sort_by' column='value'/>", "a b c ");
        offers("<filter type='sort_by' column='1' reverse_sort_order='true'/>", "c b a ");
        offers("<filter type='static_value' column='kind' value='x'/>", "a ");
        offers("<filter type='static_value' column='kind' value='x' keep='false'/>", "b c ");
        offers("<filter type='regexp' column='name' value='[AB]'/>", "b a ");
        offers("<filter type='data_meta' ref='input' key='dbkey' column='kind'/>", "a ");
        offers("<filter type='data_meta' ref='input' key='dbkey' column='kind' multiple='true'/>", "b a ");
        offers("<filter type='data_meta' ref='input' key='other' column='kind'/>", "b a c ");
        offers("<filter type='data_meta' ref='input' key='none' column='kind'/>", "b a c ");
        offers("<filter type='param_value' ref='input' ref_attribute='ext' column='kind'/>", "c ");
        offers("<filter type='param_value' ref='nothing' column='kind'/>", "");
        offers("<filter type='multiple_splitter' column='kind'/>", "b b a c ");
        offers("<filter type='multiple_splitter' column='kind'/><filter type='unique_value' column='2'/>",
               "b b c ");
        offers("<filter type='add_value' value='n' index='1'/>", "b n a c ");
        offers("<filter type='add_value' value='n'/><filter type='remove_value' value='b'/>", "a c n ");
        offers("<filter type='remove_value' meta_ref='input' key='dbkey'/>", "b a c ");
}

static void test_tables(void **state)
{
        static const struct files files[] = {
                {"tools/tool_data_table_conf.xml",
                 "<tables><table name='t' separator=';' comment_char='%' allow_duplicate_entries='no'>"
                 "<column name='value' index='1'/><file path='${__HERE__}/a.loc'/><file path='sub/b.loc'/>"
                 "</table><table name='t' separator=';'><column name='value' index='1'/><file "
                 "path='tool-data/c.loc'/></table></tables>"},
                {"/home/ann/tools/a.loc", "1;one\r\n %;no\nshort\n\n1;one\n"},
                {"tools/sub/b.loc", "2;${__HERE__}/two;more\n"},
                {"tools/../tool-data/c.loc", "3;three"},
                {"tools/tool-data/f.loc", "x 1\ny 2\n# z 3\n"},
                {NULL, NULL}};

        (void)state;
        offers_of(files, "<param><options from_data_table='t'/></param>", "value",
                  "one /home/ann/tools/sub/two three ");
        offers_of(files,
                  "<param><options from_data_table='t'><column name='value' index='0'/></options></param>",
                  "value", "1 2 3 ");
        offers_of(files, "<param><options from_data_table='t'/></param>", "0", "1 2 3 ");
        offers_of(files,
                  "<param><options from_file='f.loc' separator=' '><column name='value' "
                  "index='1'/></options></param>",
                  "value", "1 2 ");
        offers_of(files,
                  "<param><options from_file='f.loc' separator=' ' startswith='y'><column name='value' "
                  "index='0'/></options></param>",
                  "name", "y ");
        offers_of(files, "<param><options from_data_table='unknown'/></param>", "value", "unknown");
        offers_of(files, "<param><options from_dataset='input'/></param>", "value", "unknown");
        offers_of(files + 5, "<param><options from_data_table='t'/></param>", "value", "unknown");
}

static void test_missing_file(void **state)
{
        static const struct files files[] = {
                {"tools/tool_data_table_conf.xml", TABLE(COLUMNS, "\n<file path='gone.loc'/>")},
                {NULL, NULL}};
        struct tool_table rows;
        struct fixture f;

        (void)state;
        begin(&f, files, "<param><options from_data_table='t'/></param>");
        for (int times = 0; times < 2; times++) /* it is read once */
                assert_int_equal(tool_options(&f.tool, f.param, &f.values, &rows, NULL), 0);
        assert_int_equal(rows.rows->n, 0);
        assert_int_equal(f.warnings.warning_count, 1);
        assert_string_equal(f.warnings.warnings[0].text,
                            "tools/tool_data_table_conf.xml:2: the data table's file "
                            "gone.loc is not there");
        end(&f);
}

static void test_refused(void **state)
{
        static const char use[] = "<param><options from_data_table='t'/></param>";
        static const struct {
                const char *tables, *param, *why;
        } rows[] = {
                {"<tables", use, "tool_data_table_conf.xml:1"},
                {TABLE("", ""), use, "tools/tool_data_table_conf.xml:1: a column named value is missing"},
                {TABLE("<column name='value'/>", ""), use, "a <column> needs a name and an index below 1000"},
                {TABLE("<column name='value' index='1000'/>", ""), use, "below 1000"},
                {TABLE(COLUMNS, "<file url='http://x/'/>"), use,
                 "a data table's <file> is supported with a path"},
                {"<tables><table name='t' separator=''>" COLUMNS "</table></tables>", use,
                 "the separator is empty"},
                {"<tables><table name='t'>" COLUMNS
                 "</table><table name='t'><columns>value</columns></table></tables>",
                 use, "the columns are others than those of the table t before"},
                {TABLE(COLUMNS, ""),
                 "<param><options from_data_table='t'><filter type='magic'/></options></param>",
                 "t.xml:1: a filter of the type 'magic' is not supported"},
                {TABLE(COLUMNS, ""),
                 "<param><options from_data_table='t'><filter type='sort_by' "
                 "column='size'/></options></param>",
                 "this filter needs the name or the index of a column"},
                {TABLE(COLUMNS, ""),
                 "<param><options from_data_table='t'><filter type='remove_value'/></options></param>",
                 "this filter needs a value, a ref, or a meta_ref and a key"}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                const struct files files[] = {{"tools/tool_data_table_conf.xml", rows[i].tables},
                                              {NULL, NULL}};

                refused(files, rows[i].param, rows[i].why);
        }
}

/* A row for each part of a wide row: what rows take is bounded, too. */
static void test_wide(void **state)
{
        BUF_CLEANUP struct buf rows = {0};
        struct files files[] = {{"tools/tool_data_table_conf.xml", TABLE(COLUMNS, "<file path='t.loc'/>")},
                                {"tools/t.loc", NULL},
                                {NULL, NULL}};

        (void)state;
        for (int i = 0; i < 5000; i++)
                buf_addz(&rows, "a,");
        for (int i = 0; i < 5000; i++)
                buf_addz(&rows, "\tb");
        files[1].text = buf_z(&rows);
        refused(files,
                "<param><options from_data_table='t'><filter type='multiple_splitter' "
                "column='0'/></options></param>",
                "there are more than 100000 options, or 128 MiB of them");
}

/* A parameter that is repeated makes its filters look at a table again and again. */
static void test_limit(void **state)
{
        static const struct files files[] = {
                {"tools/tool_data_table_conf.xml", TABLE(COLUMNS, "<file path='t.loc'/>")},
                {"tools/t.loc", ROWS},
                {NULL, NULL}};
        struct tool_table rows;
        struct fixture f;
        struct err err = {""};

        (void)state;
        begin(&f, files,
              "<param><options from_data_table='t'><filter type='sort_by' column='0'/></options></param>");
        f.tool.rows_seen = TOOL_ROWS_MAX - 3;
        assert_int_equal(tool_options(&f.tool, f.param, &f.values, &rows, &err), 0);
        assert_int_equal(tool_options(&f.tool, f.param, &f.values, &rows, &err), -EINVAL);
        assert_non_null(strstr(err.text, "filters look at more than 10000000 options"));
        end(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_filters),      cmocka_unit_test(test_tables),
                cmocka_unit_test(test_missing_file), cmocka_unit_test(test_refused),
                cmocka_unit_test(test_wide),         cmocka_unit_test(test_limit)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
