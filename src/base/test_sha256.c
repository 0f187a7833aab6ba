#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/sha256.h"

static void expect(struct str bytes, const char *hex)
{
        unsigned char sum[SHA256_BYTES];
        char text[2 * SHA256_BYTES + 1];

        sha256(bytes, sum);
        for (size_t i = 0; i < SHA256_BYTES; i++)
                snprintf(text + 2 * i, 3, "%02x", sum[i]);
        assert_string_equal(text, hex);
}

/* The examples of NIST's "SHA-256 examples", and the lengths around a block's end (from coreutils). */
static void test_known(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        expect(STR_NONE, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        expect(STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        expect(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        for (int i = 0; i < 1000000; i++)
                buf_char(&b, 'a');
        expect(buf_view(&b), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
        expect(str_head(buf_view(&b), 55),
               "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
        expect(str_head(buf_view(&b), 56),
               "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
        expect(str_head(buf_view(&b), 64),
               "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_known)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
