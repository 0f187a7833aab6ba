/* Sanitizers: what is let through, what is written instead, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jdl/galaxy/sanitizer.h"

static int sanitize(const char *param, const char *text, struct buf *out, struct err *err)
{
        struct xml *x = NULL;
        int rc;

        assert_int_equal(xml_parse("t.xml", str_of(param), &x, err), 0);
        rc = sanitizer_apply(x, str_of(text), out, err);
        xml_free(x);
        return rc;
}

static void written(const char *param, const char *text, const char *want)
{
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        if (sanitize(param, text, &out, &err) != 0)
                fail_msg("%s: %s", param, err.text);
        assert_string_equal(buf_z(&out), want);
}

static void refused(const char *param, const char *why)
{
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        assert_int_equal(sanitize(param, "x", &out, &err), -EINVAL);
        if (!strstr(err.text, why))
                fail_msg("'%s' is not in '%s'", why, err.text);
}

static void test_usual(void **state)
{
        (void)state;
        written("<param/>", "aZ9 -=_.()/+*^,:?!", "aZ9 -=_.()/+*^,:?!");
        written("<param/>", "a>b", "a__gt__b");
        written("<param/>", "'$(x)'", "__sq__X(x)__sq__");
        written("<param/>", "\xc3\xa4", "X"); /* one for the whole character */
        written("<param><sanitizer sanitize=\"false\"/></param>", "a>$b", "a>$b");
}

static void test_valid(void **state)
{
        (void)state;
        written("<param><sanitizer invalid_char=\"\"><valid initial=\"string.digits\"/></sanitizer></param>",
                "a1-2", "12");
        written("<param><sanitizer invalid_char=\"\"><valid initial=\"string.ascii_lowercase, "
                "string.digits,string.whitespace\"/></sanitizer></param>",
                "Ab-1 2C", "b1 2");
        written("<param><sanitizer invalid_char=\"\"><valid initial=\"string.printable\"><remove "
                "preset=\"string.punctuation\"/></valid>"
                "</sanitizer></param>",
                "a;b,c d", "abc d");
        written("<param><sanitizer><valid initial=\"none\"><add value=\"&gt;\"/></valid></sanitizer></param>",
                "a>", "X>");
        written("<param><sanitizer><valid><add preset=\"string.printable\"/><remove value=\"'\"/></valid>"
                "</sanitizer></param>",
                "$'>", "$X>");
}

static void test_mapping(void **state)
{
        (void)state;
        written("<param><sanitizer><mapping><add source=\"'\" target=\"-\"/></mapping></sanitizer></param>",
                "'>", "-__gt__");
        written("<param><sanitizer><mapping initial=\"none\"><add source=\"'\" target=\"-\"/></mapping>"
                "</sanitizer></param>",
                "'>", "-X");
}

static void test_refused(void **state)
{
        (void)state;
        refused("<param><sanitizer><other/></sanitizer></param>", "t.xml:1: <other> in a sanitizer");
        refused("<param>\n<sanitizer><valid initial=\"string.nosuch\"/></sanitizer></param>",
                "t.xml:2: the sanitizer's initial=\"string.nosuch\"");
        refused("<param><sanitizer><valid><other/></valid></sanitizer></param>", "<other>");
        refused("<param><sanitizer><mapping><add source=\"ab\"/></mapping></sanitizer></param>", "mapping");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_usual),
                cmocka_unit_test(test_valid),
                cmocka_unit_test(test_mapping),
                cmocka_unit_test(test_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
