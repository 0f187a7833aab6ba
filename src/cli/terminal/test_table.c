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
        t.width = 32;
        table_print(&t, &out);
        assert_string_equal(buf_z(&out), "ID  NOTE                      X\n"
                                         " 7  it used more memory than  sh\n"
                                         "    it had asked for\n"
                                         " 8  na\xc3\xafve-012345678901234567\n"
                                         "    8901234567890123456789\n"
                                         "    end\n");
        for (unsigned width = 1; width < 80; width++) {
                buf_reset(&out);
                t.width = width;
                table_print(&t, &out);
                rest = buf_view(&out);
                while (str_cut(&rest, '\n', &line))
                        assert_true(human_width(line) <= (width > 32 ? width : 32));
                assert_non_null(strstr(buf_z(&out), "than"));
                assert_non_null(strstr(buf_z(&out), "end"));
        }
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
        const struct CMUnitTest tests[] = {cmocka_unit_test(aligns), cmocka_unit_test(cuts_to_the_width),
                                           cmocka_unit_test(wraps_what_must_be_read),
                                           cmocka_unit_test(colours_only_when_asked)};

        return cmocka_run_group_tests_name("cli table", tests, NULL, NULL);
}
