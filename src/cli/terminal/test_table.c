#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/terminal/human.h"
#include "cli/terminal/table.h"

static const struct table_column columns[] = {{"ID", true, false}, {"NAME", false, true}, {"X", false, true}};

static void fill(struct table *t)
{
        table_init(t, columns, 3);
        table_text(t, STR("7"));
        table_text(t, STR("a name of some length"));
        table_text(t, STR("short"));
        table_format(t, "%d", 1000);
        table_text(t, STR("na\xc3\xafve"));
        table_end_row(t);
}

static void aligns(void **state)
{
        struct table t TABLE_CLEANUP;
        struct buf out BUF_CLEANUP = {0};

        (void)state;
        fill(&t);
        assert_int_equal(table_rows(&t), 2);
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "  ID  NAME                   X\n"
                                         "   7  a name of some length  short\n"
                                         "1000  na\xc3\xafve\n");
}

static void integers(void **state)
{
        static const struct table_column two[] = {{"N", true, false}, {"TEXT", true, false}};
        const int64_t values[] = {0, 7, -7, 1000000, INT64_MAX, INT64_MIN};
        struct table t TABLE_CLEANUP;
        struct buf out BUF_CLEANUP = {0};

        (void)state;
        table_init(&t, two, 2);
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                table_integer(&t, values[i]);
                table_format(&t, "%lld", (long long)values[i]);
        }
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "                   N                  TEXT\n"
                                         "                   0                     0\n"
                                         "                   7                     7\n"
                                         "                  -7                    -7\n"
                                         "             1000000               1000000\n"
                                         " 9223372036854775807   9223372036854775807\n"
                                         "-9223372036854775808  -9223372036854775808\n");
}

static void is_ruled_or_raw(void **state)
{
        struct table_form form = {.columns = "name,id", .ruled = true};
        struct table t TABLE_CLEANUP;
        struct buf out BUF_CLEANUP = {0};
        struct err err = {""};

        (void)state;
        fill(&t);
        assert_int_equal(table_set_form(&t, &form, &err), 0);
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "NAME                     ID\n"
                                         "---------------------  ----\n"
                                         "a name of some length     7\n"
                                         "na\xc3\xafve                  1000\n");
        form.raw = true;
        assert_int_equal(table_set_form(&t, &form, &err), 0);
        buf_reset(&out);
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "NAME|ID\na name of some length|7\nna\xc3\xafve|1000\n");
}

static void cuts_to_the_width(void **state)
{
        struct table t TABLE_CLEANUP;
        struct buf out BUF_CLEANUP = {0};
        struct str rest, line;

        (void)state;
        fill(&t);
        t.width = 25;
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "  ID  NAME          X\n"
                                         "   7  a name of s\xe2\x80\xa6  short\n"
                                         "1000  na\xc3\xafve\n");
        /* Narrower than it can be: the least widths stay. */
        for (unsigned width = 1; width < 40; width++) {
                buf_reset(&out);
                t.width = width;
                table_print(&t, &out);
                rest = buf_view(&out);
                while (str_cut(&rest, '\n', &line))
                        assert_true(human_width(line) <= (width > 21 ? width : 21));
        }
}

/* Nothing of a reason is lost, whatever the width; a word that is too long is parted. */
static void wraps_what_must_be_read(void **state)
{
        static const struct table_column wrapping[] = {
                {"ID", true, false}, {"NOTE", false, true, false, true}, {"X", false, true}};
        struct table t TABLE_CLEANUP;
        struct buf out BUF_CLEANUP = {0};
        struct str rest, line;

        (void)state;
        table_init(&t, wrapping, 3);
        table_text(&t, STR("7"));
        table_text(&t, STR("it used more memory than it had asked for"));
        table_text(&t, STR("sh"));
        table_text(&t, STR("8"));
        table_text(&t, STR("na\xc3\xafve-0123456789012345678901234567890123456789 end"));
        table_end_row(&t);
        t.width = 36;
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "ID  NOTE                          X\n"
                                         " 7  it used more memory than it   sh\n"
                                         "    had asked for\n"
                                         " 8  na\xc3\xafve-0123456789012345678901\n"
                                         "    234567890123456789 end\n");
        buf_reset(&out);
        t.width = 35;
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "ID  X\n"
                                         " 7  sh\n"
                                         "    it used more memory than it had\n"
                                         "    asked for\n"
                                         " 8\n"
                                         "    na\xc3\xafve-0123456789012345678901234\n"
                                         "    567890123456789 end\n");
        for (unsigned width = 1; width < 80; width++) {
                buf_reset(&out);
                t.width = width;
                table_print(&t, &out);
                rest = buf_view(&out);
                while (str_cut(&rest, '\n', &line))
                        assert_true(human_width(line) <= (width > 40 ? width : 40));
                assert_non_null(strstr(buf_z(&out), "than"));
                assert_non_null(strstr(buf_z(&out), "end"));
        }
}

/* Columns in which nothing stands go first, then others that may; what is asked for by name stays. */
static void leaves_spare_columns_out(void **state)
{
        static const struct table_column some[] = {{"ID", true, false},
                                                   {"DONE", true, false, .spare = true},
                                                   {"HELD", true, false, .spare = true},
                                                   {"NAME", false, true}};
        static const struct {
                unsigned width;
                const char *titles;
        } cases[] = {{0, "ID  DONE  HELD  NAME"},
                     {40, "ID  DONE  HELD  NAME"},
                     {39, "ID  DONE  NAME"},
                     {23, "ID  DONE  NAME"},
                     {22, "ID  NAME"},
                     {12, "ID  NAME"}};
        struct table_form form = {.columns = "held,name"};
        struct table t TABLE_CLEANUP;
        struct buf out BUF_CLEANUP = {0};
        struct err err;

        (void)state;
        table_init(&t, some, 4);
        table_text(&t, STR("7"));
        table_text(&t, STR("3"));
        table_text(&t, STR("0"));
        table_text(&t, STR("a name that is not short"));
        table_end_row(&t);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct str rest, line;

                buf_reset(&out);
                t.width = cases[i].width;
                table_print(&t, &out);
                rest = buf_view(&out);
                str_cut(&rest, '\n', &line);
                assert_true(str_eqz(line, cases[i].titles));
        }
        assert_int_equal(table_set_form(&t, &form, &err), 0);
        t.width = 12;
        buf_reset(&out);
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "HELD  NAME\n   0  a name \xe2\x80\xa6\n");
}

static void colours_only_when_asked(void **state)
{
        struct table t TABLE_CLEANUP;
        struct buf out BUF_CLEANUP = {0};

        (void)state;
        table_init(&t, columns, 1);
        t.bare = true;
        table_text(&t, STR("x"));
        table_paint(&t, TABLE_RED);
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "x\n");
        buf_reset(&out);
        t.colour = true;
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "\033[31mx\033[0m\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(integers),
                                           cmocka_unit_test(aligns),
                                           cmocka_unit_test(is_ruled_or_raw),
                                           cmocka_unit_test(cuts_to_the_width),
                                           cmocka_unit_test(wraps_what_must_be_read),
                                           cmocka_unit_test(leaves_spare_columns_out),
                                           cmocka_unit_test(colours_only_when_asked)};

        return cmocka_run_group_tests_name("cli table", tests, NULL, NULL);
}
