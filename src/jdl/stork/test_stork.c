#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jdl/form/placement_words.h"
#include "jdl/stork/stork.h"

static void check(const char *ads, const char *part)
{
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        if (stork_submit(str_of(ads), &out, &err) != 0)
                fail_msg("%s: %s", ads, err.text);
        if (str_search(buf_view(&out), str_of(part)) < 0)
                fail_msg("%s\nis not in:\n%s", part, buf_z(&out));
}

static void check_wrong(const char *ads, const char *why)
{
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        assert_int_not_equal(stork_submit(str_of(ads), &out, &err), 0);
        if (str_search(str_of(err.text), str_of(why)) < 0)
                fail_msg("%s: %s", ads, err.text);
}

static void test_is(void **state)
{
        (void)state;
        assert_true(stork_is(STR("\n # a\n // b\n [")));
        assert_false(stork_is(STR("executable = /bin/true\nqueue [\n")));
        assert_false(stork_is(STR("")));
}

static void test_one(void **state)
{
        (void)state;
        check("[ dap_type = \"transfer\"; Src_Url = \"ftp://a/$x\"; dest_url = \"http://b/c\"; ]",
              "dap_type = transfer\nsrc_url = ftp://a/$(DOLLAR)x\ndest_url = http://b/c\nqueue\n");
        check("[ dap_type = \"rm\"; dest_url = \"http://b/c\"; Mine = {1, 2} ]",
              "dap_type = rm\n+Mine = { 1,2 }\nsrc_url = http://b/c\nqueue\n");
        check("[ x509proxy = \"p\"; src_url = \"a\"; dest_url = \"b\" ]", "x509proxy = p\n");
}

/* Those alike are rows of one statement, in their order; what would part words is escaped. */
static void test_several(void **state)
{
        (void)state;
        check("[ src_url = \"a, b\"; dest_url = \"c\"; max_retry = 2 ] # one\n"
              "[ src_url = \"d\"; max_retry = 2; dest_url = \"(e\" ];",
              "max_retry = 2\nsrc_url = $(dap_src)\ndest_url = $(dap_dest)\nqueue dap_src, dap_dest from "
              "(\na%2C%20b c\nd %28e\n)\n");
        check("[ src_url = \"a\"; dest_url = \"b\"; checksum = \"md5:1\" ][ src_url = \"c\"; dest_url = "
              "\"d\" ]",
              "queue\ndap_type =\nsrc_url =\ndest_url =\n");
}

static void test_wrong(void **state)
{
        (void)state;
        check_wrong("[ src_url = ", "");
        check_wrong("[ src_url = \"a\" ] queue", "behind ad 1 stands no other ad: 'queue'");
        check_wrong("[ src_url = \"a\nuniverse = vanilla\" ]", "");
        check_wrong("[ universe = \"vanilla\" ]", "ad 1: universe cannot be 'vanilla'");
        check_wrong("[ Executable = \"/bin/sh\" ]", "Executable");
}

static void test_words(void **state)
{
        uint64_t s = 0;

        (void)state;
        assert_string_equal(placement_type(STR("MkDir")), "mkdir");
        assert_string_equal(placement_type(STR("reserve")), "reserve");
        assert_null(placement_type(STR("buy")));
        assert_true(placement_seconds(STR("90"), &s) && s == 90);
        assert_true(placement_seconds(STR(" 2 hours "), &s) && s == 7200);
        assert_true(placement_seconds(STR("1day"), &s) && s == 86400);
        assert_false(placement_seconds(STR("2 moons"), &s));
        assert_false(placement_seconds(STR("soon"), &s));
        assert_false(placement_seconds(STR("99999999999999999999"), &s));
        assert_true(placement_alternatives(STR("nest-nest, gsiftp-gsiftp")));
        assert_false(placement_alternatives(STR("nest")));
        assert_false(placement_alternatives(STR("http-ftp://x")));
        assert_false(placement_alternatives(STR("")));
        assert_true(placement_checksum(STR("adler32:0a")));
        assert_false(placement_checksum(STR("adler32:")));
        assert_false(placement_checksum(STR("md5:0a")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_is),    cmocka_unit_test(test_one),   cmocka_unit_test(test_several),
                cmocka_unit_test(test_wrong), cmocka_unit_test(test_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
