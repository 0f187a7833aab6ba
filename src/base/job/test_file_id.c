#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/job/file_id.h"

static const struct str lab[] = {
        {"root://se.lab/data/", 19}, {"https://se.lab/data/", 20}, {"file:///lab/", 12}};
static const struct str deep[] = {{"https://se.lab/data/raw/", 24}};
static const struct store_urls stores[] = {{{"lab", 3}, lab, 3}, {{"raw", 3}, deep, 1}};

static void expect(const char *url, const char *name, size_t store)
{
        BUF_CLEANUP struct buf b = {0};
        size_t got = 77;

        assert_true(file_url(str_of(url), stores, 2, &b, &got));
        assert_string_equal(buf_z(&b), name);
        assert_int_equal(got, store);
}

static void test_canonical(void **state)
{
        (void)state;
        expect("HTTP://User:pw@Other.Org:80/A/b?q#f", "http://other.org/A/b?q", FILE_STORE_NONE);
        expect("https://h:8443/x", "https://h:8443/x", FILE_STORE_NONE);
        expect("https://[::1]:443/x", "https://[::1]/x", FILE_STORE_NONE);
        expect("/home/a#1", "file:///home/a#1", FILE_STORE_NONE);
        expect("file://localhost/home/a", "file:///home/a", FILE_STORE_NONE);
        expect("file:///home/%41", "file:///home/%41", FILE_STORE_NONE);
        expect("https://h/a/./b/../c/.", "https://h/a/c/", FILE_STORE_NONE);
        expect("https://h/../../%2e%2E/%7Ea%2fb%e9?x=%41/../", "https://h/~a%2Fb%E9?x=%41/../",
               FILE_STORE_NONE);
        expect("https://h/100%/%e%32E", "https://h/100%25/%25e2E", FILE_STORE_NONE);
        expect("https://h", "https://h", FILE_STORE_NONE);
        expect("https://h/", "https://h/", FILE_STORE_NONE);
        expect("https://h/a//b", "https://h/a//b", FILE_STORE_NONE);
        expect("docker://alpine:3", "docker://alpine:3", FILE_STORE_NONE);
}

static void test_stores(void **state)
{
        (void)state;
        expect("root://se.lab:1094/data/a", "root://se.lab/data/a", 0);
        expect("https://SE.lab/data/a", "root://se.lab/data/a", 0);
        expect("/lab/a", "root://se.lab/data/a", 0);
        expect("https://se.lab/data/raw/a", "https://se.lab/data/raw/a", 1);
        expect("https://se.lab/data/x/../raw/a", "https://se.lab/data/raw/a", 1);
        expect("https://se.lab//data//%72aw/a", "https://se.lab/data/raw/a", 1);
        expect("root://se.lab//data/a//b", "root://se.lab/data/a//b", 0);
        expect("/lab/a#1 %?", "root://se.lab/data/a%231%20%25%3F", 0);
        expect("https://se.lab/data/a%231%20%25%3f", "root://se.lab/data/a%231%20%25%3F", 0);
        expect("/lab/x/../../lab2/a", "file:///lab2/a", FILE_STORE_NONE);
        expect("https://se.lab/database", "https://se.lab/database", FILE_STORE_NONE);
}

static void test_wrong(void **state)
{
        static const char *const wrong[] = {
                "",        "a/b",           "x",           "://x",       "1x://y",      "http://",
                "a b://c", "file://host/x", "https://me@", "https://?q", "http://h:x/", "http://a:b:1/"};
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_false(file_url(str_of(wrong[i]), stores, 2, &b, NULL));
        assert_int_equal(b.n, 0);
        assert_true(file_prefix(STR("HTTPS://se.LAB:443/data"), &b));
        assert_string_equal(buf_z(&b), "https://se.lab/data/");
        buf_reset(&b);
        assert_true(file_prefix(STR("root://se.lab//data//x//"), &b));
        assert_string_equal(buf_z(&b), "root://se.lab/data/x/");
        buf_reset(&b);
        assert_true(file_prefix(STR("/data"), &b));
        assert_string_equal(buf_z(&b), "file:///data/");
}

static void test_below(void **state)
{
        (void)state;
        assert_true(file_is_below(STR("https://se.lab/data//a"), STR("https://se.lab/data/")));
        assert_true(file_is_below(STR("https://se.lab/a//b/c"), STR("https://se.lab/a/b/")));
        assert_false(file_is_below(STR("https://se.lab/database"), STR("https://se.lab/data/")));
        assert_false(file_is_below(STR("https://se.lab/data"), STR("https://se.lab/data/")));
}

/* The number is on the wire: it may never change. */
static void test_number(void **state)
{
        unsigned char sum[32] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

        (void)state;
        assert_true(file_id(STR("abc")) == 0xba7816bf8f01cfeau);
        assert_true(file_id_of_content(sum) == 0x0102030405060708u);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_canonical), cmocka_unit_test(test_stores), cmocka_unit_test(test_wrong),
                cmocka_unit_test(test_below),     cmocka_unit_test(test_number),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
