#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "auth/principal.h"

static void splits_and_prints(void **state)
{
        static const char *const good[] = {"ann@local", "a.b-c_d+e$@x.example.org", "ann@corp@local",
                                           "C\\ann@local"};
        static const char *const bad[] = {"",           "ann",        "@local",   "ann@",   "an n@local",
                                          "ann@lo cal", "-ann@local", ".x@local", "ann@-x", "a/b@x",
                                          "ann@x_y",    "ann\n@x",    "ann@x@"};
        struct str name, domain;

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                BUF_CLEANUP struct buf b = {0};

                assert_int_equal(principal_split(str_of(good[i]), &name, &domain), 0);
                assert_int_equal(principal_print(&b, name, domain), 0);
                assert_string_equal(buf_z(&b), good[i]);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (principal_split(str_of(bad[i]), &name, &domain) != -EINVAL)
                        fail_msg("\"%s\" was taken", bad[i]);
        assert_int_equal(principal_split(STR("ann@corp@local"), &name, &domain), 0);
        assert_true(str_eqz(name, "ann@corp"));
        assert_int_equal(principal_split(STR("a\0b@local"), &name, &domain), -EINVAL);
}

static void has_limits(void **state)
{
        char text[PRINCIPAL_MAX + 2];
        struct str name, domain;

        (void)state;
        memset(text, 'a', sizeof(text));
        text[PRINCIPAL_NAME_MAX] = '@';
        assert_int_equal(principal_split(str_make(text, PRINCIPAL_MAX), &name, &domain), 0);
        assert_int_equal(principal_split(str_make(text, PRINCIPAL_MAX + 1), &name, &domain), -EINVAL);
        text[PRINCIPAL_NAME_MAX] = 'a';
        text[PRINCIPAL_NAME_MAX + 1] = '@';
        assert_int_equal(principal_split(str_make(text, PRINCIPAL_NAME_MAX + 5), &name, &domain), -EINVAL);
}

static void maps_users(void **state)
{
        BUF_CLEANUP struct buf b = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(principal_of_uid(&b, 0, STR("local"), &err), 0);
        assert_string_equal(buf_z(&b), "root@local");
        buf_reset(&b);
        assert_int_equal(principal_of_uid(&b, 3999999999u, STR("local"), &err), -ENOENT);
        assert_non_null(strstr(err.text, "3999999999"));
        assert_int_equal(principal_of_uid(&b, 0, STR("not a domain"), &err), -EINVAL);
        assert_int_equal(b.n, 0);
}

static void roles(void **state)
{
        enum role r = ROLE_USER;

        (void)state;
        assert_int_equal(role_parse(STR("operator"), &r), 0);
        assert_int_equal(r, ROLE_OPERATOR);
        assert_string_equal(role_name(ROLE_ADMIN), "admin");
        assert_int_equal(role_parse(STR("root"), &r), -EINVAL);
        assert_int_equal(role_parse(STR(""), &r), -EINVAL);
        assert_int_equal(r, ROLE_OPERATOR);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(splits_and_prints),
                cmocka_unit_test(has_limits),
                cmocka_unit_test(maps_users),
                cmocka_unit_test(roles),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
