/* The checksum against the examples of FIPS 180-4. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/format/sha256.h"

static void test_examples(void **state)
{
        char hex[SHA256_HEX];

        (void)state;
        assert_int_equal(sha256_hex(STR("abc"), hex, NULL), 0);
        assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_int_equal(sha256_hex(STR(""), hex, NULL), 0);
        assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* A file that is longer than a piece, and one that cannot be read. */
static void of_a_descriptor(void **state)
{
        char path[] = "/tmp/test_sha256.XXXXXX", of_file[SHA256_HEX], of_text[SHA256_HEX];
        size_t n = 700001;
        char *text = malloc(n);
        struct err err;
        int fd = mkstemp(path), none = open("/", O_RDONLY | O_DIRECTORY);

        (void)state;
        for (size_t i = 0; i < n; i++)
                text[i] = (char)(i * 7919 >> 3);
        assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
        assert_int_equal(sha256_fd(fd, of_file, &err), 0);
        assert_int_equal(sha256_hex(str_make(text, n), of_text, &err), 0);
        assert_string_equal(of_file, of_text);
        assert_int_equal(sha256_fd(none, of_file, &err), -EISDIR);
        close(none);
        close(fd);
        unlink(path);
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples),
                                           cmocka_unit_test(of_a_descriptor)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
