/* `why` over thousands of queues, some at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/test_help.h"

#define QUEUES 3000u
#define SLICE  100u

static const char *const choosy[] = {"Requirements", "TARGET.Memory > 500 && TARGET.Site == \"a\"", NULL};

static void offer_many(struct core *c)
{
        for (unsigned i = 0; i < QUEUES; i++) {
                char name[32], ad[128];

                snprintf(name, sizeof(name), "n%04u", i);
                snprintf(ad, sizeof(ad), "[Cpus=1; TotalCpus=1; Memory=%u; Disk=100; Site=\"%s\"]",
                         i % 2 ? 1000 : 100, i % 3 ? "a" : "b");
                offer(c, name, i % 6 == 1 ? "[Cpus=1; TotalCpus=1; Memory=1; Disk=1; Site=\"c\"]" : ad);
        }
}

static void tell(void *arg, const struct core_why *w)
{
        buf_printf(arg, "%s %d " STR_FMT "\n", w->agent, (int)w->verdict, STR_ARG(w->clause));
}

static void tell_change(void *arg, const struct core_change *x)
{
        buf_printf(arg, STR_FMT ": %u of %u\n", STR_ARG(x->text), x->alone, x->refused);
}

/* The slices together say what the whole says, each looks at so many queues and no more, and what comes in
 * between does not disturb. */
static void test_slices(void **state)
{
        struct core *c = *state;
        struct buf BUF_CLEANUP whole = {0}, some = {0};
        struct core_walk *w;
        uint64_t r;

        offer_many(c);
        r = test_submit(c, "ann@lab", 1, choosy);
        assert_int_equal(core_why(c, r, 0, tell, &whole), 0);
        w = core_walk_new(c);
        for (unsigned i = 0; i < QUEUES / SLICE; i++) {
                size_t before = some.n, lines = 0;

                assert_false(core_walk_is_over(w));
                assert_int_equal(core_why_some(c, w, SLICE, r, 0, tell, &some), 0);
                for (size_t k = before; k < some.n; k++)
                        lines += some.p[k] == '\n';
                assert_int_equal(lines, SLICE);
                if (i == 3)
                        offer(c, "n0000new", "[Cpus=1; TotalCpus=1; Memory=1; Disk=1]");
        }
        assert_true(core_walk_is_over(w));
        assert_string_equal(buf_z(&some), buf_z(&whole));
        buf_reset(&some);
        assert_int_equal(core_why_some(c, w, SLICE, r, 0, tell, &some), 0);
        assert_int_equal(some.n, 0);
        core_walk_free(w);
}

static void test_changes(void **state)
{
        struct core *c = *state;
        struct core_what_if *once = core_what_if_new(), *often = core_what_if_new();
        struct buf BUF_CLEANUP whole = {0}, some = {0};
        struct core_walk *w;
        unsigned slices = 0;
        uint64_t r;

        offer_many(c);
        r = test_submit(c, "ann@lab", 1, choosy);
        w = core_walk_new(c);
        assert_int_equal(core_what_if_look(c, once, w, QUEUES, r, 0), 0);
        assert_true(core_walk_is_over(w));
        core_walk_free(w);
        core_what_if_tell(once, tell_change, &whole);
        w = core_walk_new(c);
        for (; !core_walk_is_over(w); slices++)
                assert_int_equal(core_what_if_look(c, often, w, SLICE, r, 0), 0);
        assert_int_equal(slices, QUEUES / SLICE);
        core_what_if_tell(often, tell_change, &some);
        assert_true(whole.n > 0);
        assert_string_equal(buf_z(&some), buf_z(&whole));
        core_walk_free(w);
        core_what_if_free(once);
        core_what_if_free(often);
}

/* Each queue has a clause of its own: no more than some of them are told. */
static void test_many_clauses(void **state)
{
        struct core *c = *state;
        struct core_what_if *x = core_what_if_new();
        struct buf BUF_CLEANUP said = {0};
        struct core_walk *w;
        size_t lines = 0;
        uint64_t r;

        for (unsigned i = 0; i < 2 * CORE_WHAT_IF_MAX; i++) {
                char name[32], ad[128];

                snprintf(name, sizeof(name), "n%04u", i);
                snprintf(ad, sizeof(ad), "[Cpus=1; Memory=1; Disk=1; Requirements = TARGET.x > %u]", i);
                offer(c, name, ad);
        }
        r = test_submit(c, "ann@lab", 1, (const char *const[]){"x", "0", NULL});
        w = core_walk_new(c);
        assert_int_equal(core_what_if_look(c, x, w, UINT32_MAX, r, 0), 0);
        core_what_if_tell(x, tell_change, &said);
        for (size_t k = 0; k < said.n; k++)
                lines += said.p[k] == '\n';
        assert_int_equal(lines, CORE_WHAT_IF_MAX);
        core_walk_free(w);
        core_what_if_free(x);
}

static void test_gone(void **state)
{
        struct core *c = *state;
        struct core_walk *w = core_walk_new(c);
        struct core_what_if *x = core_what_if_new();
        struct buf BUF_CLEANUP said = {0};

        assert_true(core_walk_is_over(w));
        assert_int_equal(core_why_some(c, w, SLICE, 7, 0, tell, &said), CORE_UNKNOWN);
        assert_int_equal(core_what_if_look(c, x, w, SLICE, 7, 0), CORE_UNKNOWN);
        core_walk_free(w);
        core_what_if_free(x);
        core_walk_free(NULL);
        core_what_if_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_slices),
                TEST(test_changes),
                TEST(test_many_clauses),
                TEST(test_gone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
