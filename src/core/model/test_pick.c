/* Picked jobs are the same as before, with other numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "core/model/changes.h"
#include "core/model/pick.h"

struct world {
        struct submission from, to;
        struct arena arena;
        struct err err;
};

static int setup(void **state)
{
        static struct world w;

        w = (struct world){0};
        *state = &w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        submission_deinit(&w->from);
        submission_deinit(&w->to);
        arena_deinit(&w->arena);
        return 0;
}

static struct submission_part *part(struct world *w, const char *items, uint64_t rows, uint64_t steps)
{
        struct submission_part *p = submission_add_part(&w->from);

        p->rows = rows;
        p->steps = steps;
        p->items = str_of(items);
        if (items)
                submission_add_variable(p, STR("file"));
        return p;
}

static int pick(struct world *w, const char *members, struct str changes)
{
        struct set some = {0};
        int r;

        assert_int_equal(set_parse(&some, str_of(members), 1000), 0);
        r = submission_pick(&w->from, &some, false, changes, &w->arena, &w->to, &w->err);
        set_deinit(&some);
        if (r == 0)
                assert_int_equal(submission_check(&w->to, NULL), 0);
        return r;
}

static void expect(const struct submission_part *p, const char *name, const char *text)
{
        for (size_t i = 0; i < p->attribute_count; i++)
                if (str_ieqz(p->attributes[i].name, name)) {
                        assert_non_null(text);
                        if (!str_eqz(p->attributes[i].text, text))
                                fail_msg(STR_FMT, STR_ARG(p->attributes[i].text));
                        return;
                }
        assert_null(text);
}

static void test_numbers_stay(void **state)
{
        struct world *w = *state;
        struct submission_part *p = part(w, NULL, 1, 10);

        submission_add_attribute(p, STR("Arguments"),
                                 STR("\"$(Process) $(procid:7) $INT(Process,%03d) $(Step) $(Cluster)\""),
                                 true);
        submission_add_attribute(p, STR("Env"), STR("\"$(Process)\""), false);
        submission_add_attribute(p, STR("Path"), STR("\"$(Processes) $Process $$(Step) $(\""), true);
        assert_int_equal(pick(w, "3,7", STR_NONE), 0);
        p = w->to.parts;
        assert_int_equal(submission_members(&w->to), 2);
        expect(p, "Arguments",
               "\"$(OldProcess) $(OldProcess:7) $INT(OldProcess,%03d) $(OldStep) $(Cluster)\"");
        expect(p, "Env", "\"$(Process)\"");
        expect(p, "Path", "\"$(Processes) $Process $$(Step) $(\"");
        assert_int_equal(p->variable_count, 3);
        assert_true(str_eqz(p->items, "3\x1f"
                                      "3\x1f"
                                      "0\n7\x1f"
                                      "7\x1f"
                                      "0\n"));
}

static void test_items_stay(void **state)
{
        struct world *w = *state;
        struct submission_part *p = part(w, "a\nb\nc\n", 3, 2);

        submission_add_attribute(p, STR("Arguments"), STR("\"$(file)\""), true);
        p = part(w, "x\ny\n", 2, 1);
        assert_int_equal(pick(w, "1,4-5,7", STR_NONE), 0);
        assert_int_equal(w->to.part_count, 2);
        assert_true(str_eqz(w->to.parts[0].items, "a\x1f"
                                                  "1\x1f"
                                                  "1\x1f"
                                                  "0\nc\x1f"
                                                  "4\x1f"
                                                  "0\x1f"
                                                  "2\nc\x1f"
                                                  "5\x1f"
                                                  "1\x1f"
                                                  "2\n"));
        assert_true(str_eqz(w->to.parts[1].items, "y\x1f"
                                                  "7\x1f"
                                                  "0\x1f"
                                                  "1\n"));
        assert_int_equal(submission_members(&w->to), 4);
}

/* A part without macros needs no rows; parts without a picked job are left out. */
static void test_plain_jobs(void **state)
{
        struct world *w = *state;

        submission_add_attribute(part(w, NULL, 1, 5), STR("A"), STR("1"), false);
        submission_add_attribute(part(w, NULL, 1, 5), STR("A"), STR("2"), false);
        assert_int_equal(pick(w, "6-8", STR_NONE), 0);
        assert_int_equal(w->to.part_count, 1);
        expect(w->to.parts, "A", "2");
        assert_int_equal(w->to.parts[0].steps, 3);
        assert_int_equal(w->to.parts[0].variable_count, 0);
}

static void test_changes_and_files(void **state)
{
        struct world *w = *state;
        struct submission_part *p = part(w, NULL, 1, 2);
        BUF_CLEANUP struct buf changes = {0};

        submission_add_attribute(p, STR("RequestMemory"), STR("1"), false);
        submission_add_attribute(p, STR("Rank"), STR("1"), false);
        submission_add_attribute(p, STR("DependsOn"), STR("\"3\""), false);
        submission_add_file(&w->from)->name = STR("in.txt");
        w->from.edges = STR("edges");
        changes_add(&changes, STR("requestmemory"), false, STR("9"));
        changes_add(&changes, STR("Rank"), false, STR_NONE);
        changes_add(&changes, STR("Note"), true, STR("\"$(Process)\""));
        assert_int_equal(
                submission_pick(&w->from, NULL, false, buf_view(&changes), &w->arena, &w->to, &w->err), 0);
        p = w->to.parts;
        expect(p, "RequestMemory", "9");
        expect(p, "Rank", NULL);
        expect(p, "Note", "\"$(Process)\"");
        expect(p, "DependsOn", "\"3\"");
        assert_int_equal(submission_members(&w->to), 2);
        assert_true(str_eqz(w->to.edges, "edges") && str_eqz(w->to.spooled[0].name, "in.txt"));
        submission_deinit(&w->to);
        assert_int_equal(pick(w, "1", buf_view(&changes)), 0);
        expect(w->to.parts, "DependsOn", NULL);
        expect(w->to.parts, "Note", "\"$(OldProcess)\"");
        assert_true(w->to.edges.n == 0);
}

static void test_nobody_and_too_many(void **state)
{
        struct world *w = *state;
        struct set none = {0};

        part(w, NULL, 1, 2);
        assert_int_equal(pick(w, "1-2", STR_NONE), -EINVAL);
        assert_string_equal(w->err.text, "there are only 2 jobs in the request");
        assert_int_equal(submission_pick(&w->from, &none, false, STR_NONE, &w->arena, &w->to, &w->err),
                         -EINVAL);
}

/* Job 0 is not picked: its children do not wait for it, and the other edges keep their order and
 * conditions. */
static void test_the_graph_of_those_that_are_left(void **state)
{
        struct world *w = *state;
        struct set some = {0};

        part(w, NULL, 1, 8);
        w->from.edges = STR("0>1-2;1-2>3;3>4:any;0,4>5:ok=7;5>6:retry;0>7");
        assert_int_equal(set_parse(&some, STR("1-2,4-7"), 1000), 0);
        assert_int_equal(submission_pick(&w->from, &some, true, STR_NONE, &w->arena, &w->to, &w->err), 0);
        set_deinit(&some);
        if (!str_eqz(w->to.edges, "2>3:ok=7;3>4:retry"))
                fail_msg(STR_FMT, STR_ARG(w->to.edges));
        assert_int_equal(submission_members(&w->to), 6);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_numbers_stay, setup, teardown),
                cmocka_unit_test_setup_teardown(test_items_stay, setup, teardown),
                cmocka_unit_test_setup_teardown(test_plain_jobs, setup, teardown),
                cmocka_unit_test_setup_teardown(test_changes_and_files, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nobody_and_too_many, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_graph_of_those_that_are_left, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
