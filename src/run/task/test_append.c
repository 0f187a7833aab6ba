#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/fs.h"
#include "run/task/append.h"

#define FIRST  "of the first step\n"
#define SECOND "of the second step\n"

static char top[64];

static int setup(void **state)
{
        (void)state;
        strncpy(top, "/tmp/drover-append-XXXXXX", sizeof(top) - 1);
        return !mkdtemp(top) || chdir(top) < 0;
}

static int teardown(void **state)
{
        (void)state;
        return chdir("/") < 0 || fs_remove_tree(AT_FDCWD, top) != 0;
}

static void write_file(const char *name, const char *text)
{
        assert_int_equal(fs_write(AT_FDCWD, name, str_of(text), 0600, false, NULL), 0);
}

static void expect(const char *text)
{
        BUF_CLEANUP struct buf got = {0};

        assert_int_equal(fs_read(AT_FDCWD, "to", 1 << 20, &got, NULL), 0);
        assert_string_equal(buf_z(&got), text);
        assert_int_equal(access("from", F_OK), -1);
}

static void append(const char *text)
{
        write_file("from", text);
        assert_int_equal(append_once("from", "to", "mark"), 0);
}

static void test_once(void **state)
{
        (void)state;
        write_file("to", FIRST);
        append(SECOND);
        expect(FIRST SECOND);
        append(SECOND); /* fetched again by one that was killed before it noted the end */
        append(SECOND);
        expect(FIRST SECOND);
        unlink("mark"); /* another step that says the same */
        append(SECOND);
        expect(FIRST SECOND SECOND);
}

static void test_killed_at_each_byte(void **state)
{
        char part[sizeof(FIRST SECOND)];

        (void)state;
        for (size_t n = sizeof(FIRST) - 1; n < sizeof(part); n++) {
                memcpy(part, FIRST SECOND, n);
                part[n] = '\0';
                write_file("to", part);
                write_file("mark", "18\n");
                append(SECOND);
                expect(FIRST SECOND);
        }
}

/* Text added by another program in between is kept. */
static void test_others_write_there(void **state)
{
        (void)state;
        write_file("to", FIRST "other\n");
        write_file("mark", "18\n");
        append(SECOND);
        expect(FIRST "other\n" SECOND); /* whose first letter is alike */
        write_file("to", FIRST SECOND "other\n");
        append(SECOND);
        expect(FIRST SECOND "other\n");
}

static void test_strange(void **state)
{
        (void)state;
        append(SECOND); /* made */
        expect(SECOND);
        write_file("mark", "much\n");
        append(SECOND);
        expect(SECOND SECOND);
        write_file("mark", "99999999999999999999\n");
        append("");
        assert_int_equal(append_once("nothing", "to", "mark"), -ENOENT);
        write_file("from", FIRST);
        assert_int_equal(unlink("to"), 0);
        assert_int_equal(symlink("away", "to"), 0);
        assert_int_equal(append_once("from", "to", "mark"), -ELOOP);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                T(test_once),
                T(test_killed_at_each_byte),
                T(test_others_write_there),
                T(test_strange),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
