#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/job/match_macro.h"

static bool value(void *arg, struct str inside, struct buf *out)
{
        (void)arg;
        if (str_eqz(inside, "Arch"))
                buf_addz(out, "X86_64");
        else if (str_eqz(inside, "Odd"))
                buf_addz(out, "$$(Arch)");
        else if (str_eqz(inside, "[strcat(\")\", Arch)]"))
                buf_addz(out, ")X");
        else
                return false;
        return true;
}

static void test_fill(void **state)
{
        static const struct {
                const char *text, *filled;
        } cases[] = {
                {"", ""},
                {"plain $(x) $$ $$x", "plain $(x) $$ $$x"},
                {"a.$$(Arch).b$$(Arch)", "a.X86_64.bX86_64"},
                {"$$(DOLLARDOLLAR)(Arch) $$(dollardollar)", "$$(Arch) $$"},
                {"<$$(Odd)>", "<$$(Arch)>"},
                {"$$(Unknown:of (them))", "$$(Unknown:of (them))"},
                {"$$([strcat(\")\", Arch)])!", ")X!"},
                {"$$(Arch", "$$(Arch"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                BUF_CLEANUP struct buf out = {0};

                match_macro_fill(str_of(cases[i].text), value, NULL, &out);
                assert_string_equal(buf_z(&out), cases[i].filled);
        }
}

static void test_parts(void **state)
{
        struct str rest = STR("x$$( Name :de:fault)$$([ a + b ])$$(9)"), before;
        struct match_macro m;

        (void)state;
        assert_int_equal(match_macro_next(&rest, &before, &m), MATCH_MACRO_ONE);
        assert_true(str_eqz(before, "x") && str_eqz(m.name, "Name") && str_eqz(m.otherwise, "de:fault"));
        assert_int_equal(match_macro_next(&rest, &before, &m), MATCH_MACRO_ONE);
        assert_true(before.n == 0 && m.name.n == 0 && str_eqz(m.expression, "a + b") && !m.otherwise.p);
        assert_int_equal(match_macro_next(&rest, &before, &m), MATCH_MACRO_BAD);
        assert_true(str_eqz(before, "$$(9)"));
}

static void test_bad(void **state)
{
        static const char *const bad[] = {"$$(", "$$()", "$$([])", "$$([a)", "$$(a b)", "$$(:x)", "$$([\")]"};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct str rest = str_of(bad[i]), before;
                struct match_macro m;

                assert_true(match_macro_present(rest));
                assert_int_equal(match_macro_next(&rest, &before, &m), MATCH_MACRO_BAD);
        }
        assert_false(match_macro_present(STR("$(a) $$x")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fill),
                cmocka_unit_test(test_parts),
                cmocka_unit_test(test_bad),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
