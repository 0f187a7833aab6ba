#include "run/call/ssh.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_words(void **state)
{
        const struct ssh s = {"me@login", "/etc/cfg", "/run/x/ssh"};
        ARGS_CLEANUP struct args words = {0}, argv = {0}, end = {0};

        (void)state;
        args_add(&words, STR("drover"));
        args_add(&words, STR("it's $HOME; rm *"));
        ssh_words(&s, "echo \"$1\"", &words, &argv);
        assert_string_equal(argv.v[0], "ssh");
        assert_string_equal(argv.v[1], "-F");
        assert_string_equal(argv.v[2], "/etc/cfg");
        assert_string_equal(argv.v[3], "-oControlPath=/run/x/ssh");
        assert_string_equal(argv.v[argv.n - 3], "--");
        assert_string_equal(argv.v[argv.n - 2], "me@login");
        assert_string_equal(argv.v[argv.n - 1],
                            "exec /bin/sh -c 'echo \"$1\"' 'drover' 'it'\\''s $HOME; rm *'");
        ssh_end_words(&s, &end);
        assert_string_equal(end.v[end.n - 3], "-Oexit");
        assert_string_equal(end.v[end.n - 1], "me@login");
}

static void test_what_is_refused(void **state)
{
        static const struct ssh bad[] = {
                {"", NULL, "/s"},
                {"-oProxyCommand=x", NULL, "/s"},
                {"a b", NULL, "/s"},
                {"h", NULL, "/has%h"},
                {"h", NULL,
                 "/12345678901234567890123456789012345678901234567890123456789012345678901234567890123456"},
        };
        const struct ssh good = {"ssh://me@login:22", NULL, "/s"};
        struct err err = {""};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(ssh_check(&bad[i], &err), -EINVAL);
        assert_int_equal(ssh_check(&good, &err), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_words),
                                           cmocka_unit_test(test_what_is_refused)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
