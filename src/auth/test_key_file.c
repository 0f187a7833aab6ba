#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "auth/key_file.h"
#include "base/buf.h"
#include "base/system/fs.h"

static void a_key_is_made_once(void **state)
{
        char dir[] = "/tmp/drover-key-XXXXXX";
        BUF_CLEANUP struct buf path = {0};
        unsigned char first[KEY_FILE_BYTES] = {0}, again[KEY_FILE_BYTES] = {0}, other[KEY_FILE_BYTES] = {0};
        struct stat st;
        struct err err;

        (void)state;
        assert_non_null(mkdtemp(dir));
        buf_printf(&path, "%s/a.key", dir);
        assert_int_equal(key_file_open(buf_z(&path), "remove it", first, &err), 0);
        assert_int_equal(stat(buf_z(&path), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(st.st_size, KEY_FILE_BYTES);
        assert_int_equal(key_file_open(buf_z(&path), "remove it", again, &err), 0);
        assert_memory_equal(first, again, KEY_FILE_BYTES);
        buf_reset(&path);
        buf_printf(&path, "%s/b.key", dir);
        assert_int_equal(key_file_open(buf_z(&path), "remove it", other, &err), 0);
        assert_memory_not_equal(first, other, KEY_FILE_BYTES);
        fs_remove_tree(AT_FDCWD, dir);
}

static void damaged_files_are_refused(void **state)
{
        char dir[] = "/tmp/drover-key-XXXXXX";
        BUF_CLEANUP struct buf path = {0}, text = {0};
        unsigned char key[KEY_FILE_BYTES] = "as it was";
        static const size_t lengths[] = {0, KEY_FILE_BYTES - 1, KEY_FILE_BYTES + 1, 100};
        struct err err;

        (void)state;
        assert_non_null(mkdtemp(dir));
        buf_printf(&path, "%s/a.key", dir);
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
                buf_reset(&text);
                while (text.n < lengths[i])
                        buf_addz(&text, "x");
                assert_int_equal(fs_write(AT_FDCWD, buf_z(&path), buf_view(&text), 0600, false, &err), 0);
                assert_int_equal(key_file_open(buf_z(&path), "remove it, please", key, &err), -EINVAL);
                assert_non_null(strstr(err.text, "a.key is not a key of 32 bytes: remove it, please"));
                assert_string_equal((char *)key, "as it was");
        }
        assert_int_equal(key_file_open(dir, "remove it", key, &err), -EISDIR);
        fs_remove_tree(AT_FDCWD, dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_key_is_made_once),
                cmocka_unit_test(damaged_files_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
