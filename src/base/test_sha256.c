/* The checksum against the examples of FIPS 180-4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sha256.h"

static void test_examples(void **state)
{
        char hex[SHA256_HEX];

        (void)state;
        assert_int_equal(sha256_hex(STR("abc"), hex, NULL), 0);
        assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_int_equal(sha256_hex(STR(""), hex, NULL), 0);
        assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
