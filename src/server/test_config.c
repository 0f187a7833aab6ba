#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/config.h"

static void test_file(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(
                config_parse(
                        &c, "f",
                        STR("domain: example.org\nlisten: ['0.0.0.0:7331', '[::]:7331']\n"
                            "admins: ann@example.org\nlease: 10m\nkeep_finished: 2d\nlog_level: debug\n"),
                        &err),
                0);
        assert_string_equal(c.domain, "example.org");
        assert_int_equal(c.listen.count, 2);
        assert_string_equal(c.listen.items[1], "[::]:7331");
        assert_int_equal(c.admins.count, 1);
        assert_int_equal(c.lease_ms, 600000);
        assert_int_equal(c.keep_finished_ms, 2 * 86400000);
        assert_int_equal(c.log_level, LOG_DEBUG);
        config_deinit(&c);
}

static void test_empty(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(config_parse(&c, "f", STR("# nothing\n"), &err), 0);
        config_deinit(&c);
}

/* Each names the file and the line. */
static void test_bad(void **state)
{
        static const struct {
                const char *text, *where;
        } bad[] = {
                {"domain: x\nlisten_on: y\n", "f:2"},
                {"lease: soon\n", "f:1"},
                {"\nlog_level: loud\n", "f:2"},
                {"domain: [a, b]\n", "f:1"},
                {"- domain\n", "f"},
                {"domain: 'x\n", "f:"},
                {"admins: {a: b}\n", "f:1"},
                {"lease: 0s\n", "f:1"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct config c = {0};
                struct err err = {0};

                assert_int_equal(config_parse(&c, "f", str_of(bad[i].text), &err), -EINVAL);
                if (strncmp(err.text, bad[i].where, strlen(bad[i].where)) != 0)
                        fail_msg("\"%s\" does not begin with %s", err.text, bad[i].where);
                config_deinit(&c);
        }
}

static void test_options_win(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        c.domain = mem_dupz("given");
        assert_int_equal(config_parse(&c, "f", STR("domain: file\n"), &err), 0);
        assert_string_equal(c.domain, "given");
        config_deinit(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_file),
                cmocka_unit_test(test_empty),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_options_win),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
