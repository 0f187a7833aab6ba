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
                                           cmocka_unit_test(colours_only_when_asked)};

        return cmocka_run_group_tests_name("cli table", tests, NULL, NULL);
}
