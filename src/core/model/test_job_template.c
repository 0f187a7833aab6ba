#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/job_template.h"

#include "base/mem.h"
#include "classad/ad.h"
#include "classad/print.h"
#include "core/model/edit.h"
#include "core/test_help.h"

#define NAMES 9

static const char *const names[NAMES] = {"Cmd", "Args",         "Iwd",         "Out",   "RequestMemory",
                                         "Env", "Requirements", "RequestCpus", "Notify"};
/* The last but one becomes 1 in the ad, and some texts have references to the place. */
static const char *const usual[NAMES] = {"\"/bin/prog\"",
                                         "\"first\"",
                                         "\"/home/ann/a long path that all jobs have in common\"",
                                         "out.$(Process)",
                                         "1024 * 2",
                                         "\"A=1 B=$$(Arch)\"",
                                         "TARGET.Memory >= RequestMemory",
                                         "0.5",
                                         "Own + Of.This.Job"};
static const char *const others[NAMES] = {"\"$$(Name)\"", "\"other\"", "\"/b\"", "o.$(Cluster)", "Own * 3",
                                          "undefined",    "\"x\"",     "0.25",   "\"\\\"\""};

/* A part with the usual texts, or with the others where `differs` has a bit. */
static struct submission_part *part_with(struct submission *s, unsigned differs)
{
        struct submission_part *p = submission_add_part(s);

        for (size_t i = 0; i < NAMES; i++)
                submission_add_attribute(p, str_of(names[i]),
                                         str_of(differs & (1u << i) ? others[i] : usual[i]),
                                         strcmp(names[i], "Out") == 0);
        submission_add_variable(p, STR("Item"));
        return p;
}

static struct job_template *made(struct core *c, unsigned differs, const char *owner)
{
        struct submission s = {0};
        struct job_template *t;
        struct err err;

        if (job_template_get(c, part_with(&s, differs), str_of(owner), &t, &err) != 0)
                fail_msg("%s", err.text);
        submission_deinit(&s);
        return t;
}

/* All that a template says, as text. */
static void describe(struct core *c, const struct job_template *t, struct buf *out)
{
        for (size_t i = 0; i < NAMES; i++) {
                symbol name = symbols_find(c->symbols, str_of(names[i]));
                const struct expr *x = ad_find(t->ad, name);

                buf_printf(out, "%s ", names[i]);
                if (x)
                        expr_print(out, x, c->symbols);
                buf_printf(out, " ~ " STR_FMT "\n", STR_ARG(job_template_late_text(t, name)));
        }
        for (size_t i = 0; i < t->fill_count; i++)
                buf_printf(out, STR_FMT " is filled\n", STR_ARG(symbols_name(c->symbols, t->fills[i])));
        buf_printf(out, "%d %s %d\n", t->fills_vary, t->variables[0], (int)t->cpus);
}

static void assert_says(struct core *c, const struct job_template *t, unsigned differs)
{
        void *other_core;
        BUF_CLEANUP struct buf got = {0}, want = {0};

        assert_int_equal(bare_core(&other_core), 0);
        struct job_template *alone = made(other_core, differs, "ann@lab");
        assert_null(alone->lender);
        describe(c, t, &got);
        describe(other_core, alone, &want);
        assert_string_equal(buf_z(&got), buf_z(&want));
        assert_true(job_template_full_bytes(t) >= job_template_bytes(alone));
        job_template_unref(other_core, alone);
        bare_core_free(&other_core);
}

static void one_that_borrows_says_the_same(void **state)
{
        struct core *c = *state;
        struct job_template *lender = made(c, 0, "ann@lab");
        unsigned borrowed = 0;

        for (unsigned differs = 1; differs < 1u << NAMES; differs++) {
                struct job_template *t = made(c, differs, "ann@lab");

                assert_says(c, t, differs);
                borrowed += t->lender == lender;
                assert_ptr_equal(made(c, differs, "ann@lab"), t); /* it is found again */
                job_template_unref(c, t);
                job_template_unref(c, t);
                if (!idmap_get(c->lenders, lender->shape)) { /* another one lent, and has gone */
                        job_template_unref(c, lender);
                        lender = made(c, 0, "ann@lab");
                }
        }
        assert_in_range(borrowed, 1, (1u << NAMES) - 2); /* some differ in too much */
        job_template_unref(c, lender);
}

static void the_lender_outlives_its_own_users(void **state)
{
        struct core *c = *state;
        struct job_template *lender = made(c, 0, "ann@lab"), *t = made(c, 2, "ann@lab");
        size_t shared = job_template_bytes(t);

        assert_ptr_equal(t->lender, lender);
        assert_true(2 * shared < job_template_full_bytes(t));
        job_template_unref(c, lender);
        assert_says(c, t, 2);
        struct job_template *next = made(c, 1, "ann@lab");
        assert_ptr_equal(next->lender, lender);
        job_template_unref(c, t);
        assert_says(c, next, 1);
        job_template_unref(c, next);
        assert_int_equal(map_count(c->templates), 0);
        assert_int_equal(idmap_count(c->lenders), 0);
}

static void nobody_borrows_from_others(void **state)
{
        struct core *c = *state;
        struct job_template *ann = made(c, 0, "ann@lab"), *bob = made(c, 2, "bob@lab");
        struct submission s = {0};
        struct submission_part *p = part_with(&s, 2);
        struct job_template *t;
        struct err err;

        assert_null(bob->lender);
        p->variables[0] = STR("Row");
        assert_int_equal(job_template_get(c, p, STR("ann@lab"), &t, &err), 0);
        assert_null(t->lender);
        job_template_unref(c, t);
        submission_deinit(&s);
        job_template_unref(c, ann);
        job_template_unref(c, bob);
}

/* The last of two texts for one name counts, whichever of them differs. */
static void a_name_that_is_there_twice(void **state)
{
        struct core *c = *state;
        struct job_template *t[2];

        for (unsigned i = 0; i < 2; i++) {
                struct submission s = {0};
                struct submission_part *p = part_with(&s, i ? 2 : 0);
                struct value v;
                struct err err;

                submission_add_attribute(p, STR("args"), STR("\"last\""), false);
                assert_int_equal(job_template_get(c, p, STR("ann@lab"), &t[i], &err), 0);
                assert_null(t[i]->lender);
                assert_true(ad_literal(t[i]->ad, symbols_find(c->symbols, STR("Args")), &v));
                assert_true(str_eqz(v.string, "last"));
                submission_deinit(&s);
        }
        job_template_unref(c, t[0]);
        job_template_unref(c, t[1]);
}

static void a_part_is_made_again_to_be_edited(void **state)
{
        struct core *c = *state;
        struct job_template *lender = made(c, 0, "ann@lab"), *from = made(c, 2 | 8, "ann@lab"), *t;
        BUF_CLEANUP struct buf changes = {0};
        struct err err;

        assert_ptr_equal(from->lender, lender);
        changes_add(&changes, STR("Cmd"), false, str_of(others[0]));
        assert_int_equal(job_template_edit(c, from, buf_view(&changes), STR("ann@lab"), &t, &err), 0);
        assert_says(c, t, 1 | 2 | 8);
        job_template_unref(c, t);
        job_template_unref(c, from);
        job_template_unref(c, lender);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(one_that_borrows_says_the_same, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(the_lender_outlives_its_own_users, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(nobody_borrows_from_others, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(a_name_that_is_there_twice, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(a_part_is_made_again_to_be_edited, bare_core, bare_core_free),
        };

        return cmocka_run_group_tests_name("core job template", tests, NULL, NULL);
}
