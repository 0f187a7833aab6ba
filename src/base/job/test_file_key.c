#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/job/file_key.h"

static const struct str lab[] = {{"root://se.lab/data/", 19}, {"https://se.lab/", 15}};
static const struct store_urls stores[] = {{{"lab", 3}, lab, 2}};
static const struct file_credential ann_has[] = {
        {{"web", 3}, {"https://se.lab/in/ https://other.org/", 37}, false},
        {{"deep", 4}, {"https://other.org/deep/", 23}, false},
        {{"again", 5}, {"https://other.org/deep/", 23}, false},
        {{"key", 3}, {"", 0}, true},
        {{"file", 4}, {"", 0}, false}};
static const struct file_asker ann = {{"ann", 3}, NULL, 0}, with = {{"ann", 3}, ann_has, 5};

static void expect(const struct file_asker *r, const char *url, const char *key)
{
        BUF_CLEANUP struct buf b = {0};
        size_t store = 77;

        assert_true(file_key(str_of(url), r, stores, 1, &b, &store));
        assert_string_equal(buf_z(&b), key);
        assert_true(store == 0 || store == FILE_STORE_NONE);
}

static void test_who(void **state)
{
        BUF_CLEANUP struct buf here = {0}, far = {0};

        (void)state;
        file_asker_who(STR("ann b\n@lab"), STR_NONE, STR("nobody"), &here);
        assert_string_equal(buf_z(&here), "ann%20b%0A%40lab");
        file_asker_who(STR("pilot@lab"), STR("0123"), STR("ann@far"), &far);
        assert_string_equal(buf_z(&far), "pilot%40lab 0123 ann%40far");
}

/* What is public, and whose the rest is. */
static void test_without_credentials(void **state)
{
        (void)state;
        expect(&ann, "https://SE.lab/a", "root://se.lab/data/a");
        expect(&ann, "root://se.lab//data/a#x", "root://se.lab/data/a");
        expect(&ann, "https://other.org/a", "ann\nhttps://other.org/a");
        expect(&ann, "https://Bob:pw@SE.lab/a", "ann\nhttps://Bob:pw@SE.lab/a");
        expect(&ann, "https://other.org/a@b", "ann\nhttps://other.org/a@b");
        expect(&ann, "/home/a", "ann\nfile:///home/a");
}

static void test_with_credentials(void **state)
{
        (void)state;
        expect(&with, "https://se.lab/a", "root://se.lab/data/a");
        expect(&with, "https://se.lab/in/a", "ann\tweb\nroot://se.lab/data/in/a");
        expect(&with, "root://se.lab/data/in/a",
               "ann\tweb\nroot://se.lab/data/in/a"); /* there is another way */
        expect(&with, "https://other.org/a", "ann\tweb\nhttps://other.org/a");
        expect(&with, "https://other.org/deep/a", "ann\tdeep\nhttps://other.org/deep/a");
        expect(&with, "https://third.org/a", "ann\nhttps://third.org/a");
        expect(&with, "s3://bucket/a", "ann\tkey\ns3://bucket/a");
        expect(&with, "https://u@se.lab/in/a", "ann\tweb\nhttps://u@se.lab/in/a");
}

static void test_ways(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        assert_true(file_other_way(STR("https://se.lab/x"), stores, 0, &b));
        assert_string_equal(buf_z(&b), "root://se.lab/data/x");
        assert_false(file_other_way(STR("https://se.lab/x"), stores, 1, &b));
        assert_false(file_other_way(STR("https://u@se.lab/x"), stores, 0, &b));
        assert_false(file_other_way(STR("https://other.org/x"), stores, 0, &b));
}

static void test_own_way(void **state)
{
        static const struct {
                const char *url, *own;
        } cases[] = {{"https://SE.lab:443/x", "https://se.lab/x"},
                     {"https://se.lab//x", "https://se.lab/x"},
                     {"https://se.lab/a/%2e%2e/x?%2e", "https://se.lab/x?%2e"},
                     {"root://se.lab/data//x#sha256=0", "root://se.lab/data/x"}};
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                buf_reset(&b);
                assert_true(file_own_way(str_of(cases[i].url), stores, &b));
                assert_string_equal(buf_z(&b), cases[i].own);
        }
        buf_reset(&b);
        assert_false(file_own_way(STR("https://u@se.lab/x"), stores, &b));
        assert_false(file_own_way(STR("https://other.org/x"), stores, &b));
        assert_false(file_own_way(STR("x"), stores, &b));
        assert_int_equal(b.n, 0);
}

static void test_wrong(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        assert_false(file_key(STR("a.txt"), &with, stores, 1, &b, NULL));
        assert_int_equal(b.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who),
                cmocka_unit_test(test_without_credentials),
                cmocka_unit_test(test_with_credentials),
                cmocka_unit_test(test_ways),
                cmocka_unit_test(test_own_way),
                cmocka_unit_test(test_wrong),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
