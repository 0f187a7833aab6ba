#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/format/url.h"

static void escapes_all_but_unreserved(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        url_escape(&b, STR("a-Z_0.~ /?&=%\xc3\xa4"));
        url_escape(&b, str_make("\0\n", 2));
        assert_string_equal(buf_z(&b), "a-Z_0.~%20%2F%3F%26%3D%25%C3%A4%00%0A");
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(escapes_all_but_unreserved)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
