#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/transfer/userlog_file.h"
#include "base/buf.h"

#define A "000 (007.000.000) 2026-01-02 03:04:05 Job submitted from host: <a:0>\n...\n"
#define B "001 (007.000.000) 2026-01-02 03:04:06 Job executing on host: <a:0>\n...\n"
#define C "005 (007.000.000) 2026-01-02 03:04:07 Job terminated.\n\t(1) Normal\n...\n"

static char folder[64], file[96];

static int make_folder(void **state)
{
        (void)state;
        snprintf(folder, sizeof(folder), "/tmp/drover-userlog-XXXXXX");
        if (!mkdtemp(folder))
                return -1;
        snprintf(file, sizeof(file), "%s/log", folder);
        return 0;
}

static int remove_folder(void **state)
{
        (void)state;
        unlink(file);
        return rmdir(folder);
}

static bool append(const char *text, bool maybe_there)
{
        struct err err;
        struct userlog_file_result result;

        assert_int_equal(userlog_file_append(NULL, file, str_of(text), maybe_there, &result, &err), 0);
        return result.added;
}

static void assert_file(const char *want)
{
        static char got[1 << 16];
        int fd = open(file, O_RDONLY);
        ssize_t n = read(fd, got, sizeof(got) - 1);

        close(fd);
        assert_true(n >= 0);
        got[n] = 0;
        assert_string_equal(got, want);
}

static void test_appends(void **state)
{
        (void)state;
        append(A, false);
        append(B C, false);
        assert_file(A B C);
        append(A, false);
        assert_file(A B C A);
}

static void test_leaves_out_what_is_there(void **state)
{
        (void)state;
        assert_true(append(A B, true)); /* made by it */
        assert_file(A B);
        assert_true(append(A B C, true));
        assert_file(A B C);
        assert_false(append(A B C, true));
        assert_file(A B C);
        append(C C, true); /* the second is another one */
        assert_file(A B C C);
}

#define X(n) "<c>\n    <a n=\"Proc\"><i>" #n "</i></a>\n    <a n=\"T\"><c>\n        </c></a>\n</c>\n"
#define J(n) "{\n  \"Proc\": " #n ",\n  \"T\": {}\n}\n"

static void test_other_forms_are_told_apart(void **state)
{
        (void)state;
        append(X(0) X(1) A J(0), false);
        assert_true(append(X(1) X(2) B J(0) J(1), true));
        assert_file(X(0) X(1) A J(0) X(2) B J(1));
        assert_false(append(X(2) B J(1), true));
}

/* Wherever who wrote it was killed. */
static void test_half_an_event_is_made_whole(void **state)
{
        static const char *const forms[][3] = {{A, B, C}, {X(0), X(1), X(2)}, {J(0), J(1), J(2)}};

        (void)state;
        for (size_t form = 0; form < sizeof(forms) / sizeof(*forms); form++) {
                const char *const *e = forms[form];
                size_t n = strlen(e[1]);

                for (size_t half = 0; half <= n; half++) {
                        BUF_CLEANUP struct buf there = {0}, all = {0};

                        unlink(file);
                        buf_printf(&there, "%s%.*s", e[0], (int)half, e[1]);
                        buf_printf(&all, "%s%s%s", e[0], e[1], e[2]);
                        append(buf_z(&there), false);
                        assert_true(append(buf_z(&all), true));
                        assert_file(buf_z(&all));
                }
        }
}

static void test_only_whole_lines_are_the_same(void **state)
{
        (void)state;
        append("x" A, false);
        append(A, true);
        assert_file("x" A A);
}

static void test_finds_it_in_the_tail(void **state)
{
        struct stat st;
        BUF_CLEANUP struct buf b = {0};
        off_t size;

        (void)state;
        for (int i = 0; i < 100000; i++)
                buf_printf(&b, "000 (008.%03d.000) 2026-01-02 03:04:05 Job submitted from host: <a:0>\n...\n",
                           i);
        append(A, false);
        append(buf_z(&b), false);
        append(B, false);
        assert_int_equal(stat(file, &st), 0);
        size = st.st_size;
        append(B, true);
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_size, size);
}

static void assert_refused(const char *path, int error)
{
        struct err err = {""};
        struct userlog_file_result result = {.again = true};

        assert_int_equal(userlog_file_append(NULL, path, STR(A), false, &result, &err), -error);
        assert_false(result.again);
        assert_true(err.text[0]);
}

static void test_refuses(void **state)
{
        char other[96];
        struct stat st;

        (void)state;
        snprintf(other, sizeof(other), "%s/other", folder);
        assert_int_equal(symlink(other, file), 0);
        assert_refused(file, EINVAL);
        assert_int_equal(lstat(other, &st), -1); /* not made through the link */
        unlink(file);
        assert_refused(folder, EISDIR);
        snprintf(other, sizeof(other), "%s/no/way/log", folder);
        assert_refused(other, ENOENT);
        assert_int_equal(mkfifo(file, 0600), 0);
        assert_refused(file, ENXIO);
}

/* Only the folder that the log itself is in. */
static void test_makes_its_folder(void **state)
{
        char inner[80], log[96];
        struct userlog_file_result result;
        struct err err;
        struct stat st;

        (void)state;
        snprintf(inner, sizeof(inner), "%s/logs", folder);
        snprintf(log, sizeof(log), "%s/job.log", inner);
        for (int i = 0; i < 2; i++)
                assert_int_equal(userlog_file_append(NULL, log, STR(A), false, &result, &err), 0);
        assert_int_equal(stat(log, &st), 0);
        assert_int_equal(st.st_size, 2 * strlen(A));
        assert_int_equal(unlink(log), 0);
        assert_int_equal(rmdir(inner), 0);
}

static void test_null_takes_all(void **state)
{
        struct err err;
        struct userlog_file_result result;

        (void)state;
        assert_int_equal(userlog_file_append(NULL, "/dev/null", STR(A), false, &result, &err), 0);
        assert_refused("/dev/zero", EINVAL);
}

/* A partly written text is cut off again. */
static void test_whole_or_nothing(void **state)
{
        struct rlimit was, small;
        struct err err;
        struct userlog_file_result result;
        int r;

        (void)state;
        append(A, false);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
        small = was;
        small.rlim_cur = sizeof(A) + 10;
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        r = userlog_file_append(NULL, file, STR(B), false, &result, &err);
        setrlimit(RLIMIT_FSIZE, &was);
        assert_int_equal(r, -EFBIG);
        assert_file(A);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
        const struct CMUnitTest tests[] = {
                TEST(test_appends),
                TEST(test_leaves_out_what_is_there),
                TEST(test_other_forms_are_told_apart),
                TEST(test_half_an_event_is_made_whole),
                TEST(test_only_whole_lines_are_the_same),
                TEST(test_finds_it_in_the_tail),
                TEST(test_refuses),
                TEST(test_makes_its_folder),
                TEST(test_null_takes_all),
                TEST(test_whole_or_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
