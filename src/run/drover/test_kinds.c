#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "run/drover/kinds.h"

static struct remote_kinds *read_text(const char *text)
{
        json_t *doc = json_loads(text, 0, NULL);

        assert_non_null(doc);
        struct remote_kinds *k = remote_kinds_read(doc);
        json_decref(doc);
        return k;
}

static void test_as_a_server_tells_it(void **state)
{
        struct run_capacity c = {0};

        (void)state;
        struct remote_kinds *k =
                read_text("[{\"places\":3,\"cpus\":24,\"free_cpus\":5,\"largest_cpus\":8,\"memory_mib\":64,"
                          "\"largest_memory_mib\":32,"
                          "\"attributes\":{\"Arch\":\"\\\"aarch64\\\"\"},\"requirements\":\"MY.x\","
                          "\"resources\":[{\"name\":\"GPUs\",\"all\":4,\"free\":9,\"largest\":2}]}]");
        remote_kinds_tell(k, &c);
        assert_int_equal(c.kind_count, 1);
        assert_true(c.kinds_digest != 0);
        assert_string_equal(c.kinds[0].attributes[0].value, "\"aarch64\"");
        assert_string_equal(c.kinds[0].requirements, "MY.x");
        assert_int_equal(c.kinds[0].idle_cpus_milli, 5000);
        assert_int_equal(c.kinds[0].node_memory_bytes, UINT64_C(32) << 20);
        assert_int_equal(c.kinds[0].resources[0].idle, 4); /* no more than there are */
        remote_kinds_free(k);
}

/* The digest covers the attributes, not what is free. */
static void test_the_digest(void **state)
{
        struct run_capacity a = {0}, b = {0}, c = {0};

        (void)state;
        struct remote_kinds *x = read_text(
                                    "[{\"free_cpus\":1,\"attributes\":{\"A\":\"1\"},\"requirements\":\"\"}]"),
                            *y = read_text(
                                    "[{\"free_cpus\":2,\"attributes\":{\"A\":\"1\"},\"requirements\":\"\"}]"),
                            *z = read_text(
                                    "[{\"free_cpus\":2,\"attributes\":{\"A\":\"2\"},\"requirements\":\"\"}]");
        remote_kinds_tell(x, &a);
        remote_kinds_tell(y, &b);
        remote_kinds_tell(z, &c);
        assert_true(a.kinds_digest == b.kinds_digest && b.kinds_digest != c.kinds_digest);
        remote_kinds_free(x);
        remote_kinds_free(y);
        remote_kinds_free(z);
        remote_kinds_tell(NULL, &a);
        assert_int_equal(a.kind_count, 0);
        assert_int_equal(a.kinds_digest, 0);
}

static void test_lies_are_bounded(void **state)
{
        BUF_CLEANUP struct buf b = {0};
        struct run_capacity c = {0};

        (void)state;
        assert_null(read_text("{}"));
        assert_null(remote_kinds_read(NULL));
        buf_addz(&b, "[5, null, \"x\"");
        for (int i = 0; i < 20; i++) {
                buf_addz(&b,
                         ",{\"cpus\":-5,\"free_cpus\":9223372036854775807,\"memory_mib\":9223372036854775807,"
                         "\"requirements\":7,\"resources\":[{\"name\":\"a "
                         "b\"},{\"name\":\"1\"},7],\"attributes\":{\"long\":\"");
                for (int n = 0; n < 2000; n++)
                        buf_char(&b, 'x');
                buf_addz(&b, "\"");
                for (int n = 0; n < 1000; n++)
                        buf_printf(&b, ",\"A%d\":\"%d\"", n, n);
                buf_addz(&b, ",\"no\":5}}");
        }
        buf_addz(&b, "]");
        struct remote_kinds *k = read_text(buf_z(&b));
        remote_kinds_tell(k, &c);
        assert_int_equal(c.kind_count, RUN_KINDS_MAX);
        assert_int_equal(c.kinds[0].attribute_count, 200);
        assert_int_equal(c.kinds[0].resource_count, 0);
        assert_int_equal(c.kinds[0].cpus_milli, 0);
        assert_int_equal(c.kinds[0].idle_cpus_milli, UINT64_C(100000000000));
        assert_int_equal(c.kinds[0].memory_bytes, UINT64_C(1) << 60);
        assert_string_equal(c.kinds[0].requirements, "false");
        for (size_t i = 0; i < c.kinds[0].attribute_count; i++)
                assert_true(strlen(c.kinds[0].attributes[i].value) <= 1024);
        remote_kinds_free(k);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_as_a_server_tells_it),
                cmocka_unit_test(test_the_digest),
                cmocka_unit_test(test_lies_are_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
