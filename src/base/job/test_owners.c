#include "base/job/owners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Entries stand in a text with semicolons between. */
static struct owners list(const char *text)
{
        struct str rest = str_of(text), one;
        struct owners l = {0};

        while (rest.n && str_cut(&rest, ';', &one))
                owners_add(&l, one);
        return l;
}

static void test_who_is_allowed(void **state)
{
        static const struct {
                const char *list, *owner;
                bool allowed;
        } rows[] = {
                {"", "ann@x", true},
                {"ann@x", "ann@x", true},
                {"ann@x", "ann@xy", false},
                {"ann@x", "bob@x", false},
                {"*@x", "bob@x", true},
                {"*@x", "bob@y", false},
                {"*@x", "bob@y@x", true},
                {"*@x", "@x", false},
                {"*@x;!bob@x he left", "bob@x", false},
                {"!bob@x;*@x", "bob@x", false},
                {"!bob@x;*@x", "bobby@x", true},
                {"bob@x;!bob@x", "bob@x", false},
                {"!bob@x", "ann@x", false},
                {"!", "ann@x", false},
                {"!", "", false},
                {"*", "ann@x", false},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct owners l = list(rows[i].list);

                if (owners_allow(&l, str_of(rows[i].owner)) != rows[i].allowed)
                        fail_msg("[%s] %s", rows[i].list, rows[i].owner);
                owners_deinit(&l);
        }
}

static void test_why_not(void **state)
{
        struct owners l = list("*@x;!bob@x he left;!eve@x");

        (void)state;
        assert_true(str_eq(owners_deny(&l, STR("bob@x")), STR("he left")));
        assert_true(owners_deny(&l, STR("eve@x")).p != NULL);
        assert_int_equal(owners_deny(&l, STR("eve@x")).n, 0);
        assert_null(owners_deny(&l, STR("bobby@x")).p);
        owners_deinit(&l);
}

/* Exactly those are allowed whom both lists allow. */
static void test_cut(void **state)
{
        static const char *const lists[] = {
                "",    "ann@x",     "ann@x;bob@y",        "*@x", "*@x;*@y", "*@x;!ann@x away", "!ann@x", "!",
                "*@z", "bob@x;*@y", "!bob@y gone;*@y;*@x"};
        static const char *const owners[] = {"ann@x", "bob@x", "ann@y", "bob@y", "ann@z", "eve@w"};
        size_t n = sizeof(lists) / sizeof(lists[0]);

        (void)state;
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < n; k++) {
                        struct owners a = list(lists[i]), b = list(lists[k]), cut;

                        owners_cut(&a, &b, &cut);
                        for (size_t o = 0; o < sizeof(owners) / sizeof(owners[0]); o++) {
                                struct str who = str_of(owners[o]);

                                if (owners_allow(&cut, who) !=
                                    (owners_allow(&a, who) && owners_allow(&b, who)))
                                        fail_msg("[%s] within [%s]: %s", lists[i], lists[k], owners[o]);
                        }
                        owners_deinit(&a);
                        owners_deinit(&b);
                        owners_deinit(&cut);
                }
}

static void test_many(void **state)
{
        static const struct {
                const char *list;
                bool many;
        } rows[] = {{"", true},
                    {"ann@x", false},
                    {"ann@x;ann@x", false},
                    {"ann@x;bob@x", true},
                    {"*@x", true},
                    {"!ann@x;bob@x", false},
                    {"!", false}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct owners l = list(rows[i].list);

                assert_int_equal(owners_are_many(&l), rows[i].many);
                owners_deinit(&l);
        }
}

static void test_parse(void **state)
{
        static const struct {
                const char *text;
                bool good;
                size_t count;
        } rows[] = {{"", true, 0},      {"ann@x", true, 1},     {"ann@x, *@y bob@x", true, 3},
                    {"any", true, 0},   {"ann@x,any", true, 0}, {"ann", false, 0},
                    {"@x", false, 0},   {"ann@", false, 0},     {"a*@x", true, 1},
                    {"*x@y", false, 0}, {"!ann@x", false, 0}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct owners l;

                if (owners_parse(str_of(rows[i].text), &l) != rows[i].good || l.count != rows[i].count)
                        fail_msg("%s", rows[i].text);
                owners_deinit(&l);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_is_allowed),
                cmocka_unit_test(test_why_not),
                cmocka_unit_test(test_cut),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_parse),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
