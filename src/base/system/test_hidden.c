#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "base/system/hidden.h"

static char top[64], path[160];

static const char *in_top(const char *name)
{
        snprintf(path, sizeof(path), "%s/%s", top, name);
        return path;
}

static int begin(void **state)
{
        (void)state;
        snprintf(top, sizeof(top), "/tmp/drover-hidden-XXXXXX");
        return mkdtemp(top) && fs_mkdirs(in_top("own/inner"), 0700) == 0 &&
                               fs_mkdirs(in_top("owner"), 0700) == 0 && symlink("own", in_top("link")) == 0 &&
                               fs_write(AT_FDCWD, in_top("own/inner/key"), STR("secret"), 0600, false,
                                        NULL) == 0 &&
                               symlink("own/inner/key", in_top("to_key")) == 0 &&
                               fs_write(AT_FDCWD, in_top("plain"), STR("plain"), 0600, false, NULL) == 0
                       ? 0
                       : -1;
}

static int end(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, top);
}

static struct hidden *make(void)
{
        char own[160], inner[160];

        snprintf(own, sizeof(own), "%s", in_top("own"));
        snprintf(inner, sizeof(inner), "%s", in_top("own/inner"));
        const char *const folders[] = {own, inner, "/no/such/folder"};
        return hidden_new(folders, 3);
}

static int look(const struct hidden *h, const char *name)
{
        int fd = open(in_top(name), O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        int r = hidden_check(h, fd);
        close(fd);
        return r;
}

static void what_is_open_says_where_it_is(void **state)
{
        (void)state;
        struct hidden *h = make();
        assert_int_equal(look(h, "own"), HIDDEN_INSIDE);
        assert_int_equal(look(h, "own/inner/key"), HIDDEN_INSIDE);
        assert_int_equal(look(h, "to_key"), HIDDEN_INSIDE);
        assert_int_equal(look(h, "link/inner"), HIDDEN_INSIDE);
        assert_int_equal(look(h, "owner/../own/inner/key"), HIDDEN_INSIDE);
        assert_int_equal(look(h, "plain"), 0);
        assert_int_equal(look(h, "owner"), 0);
        assert_int_equal(look(NULL, "own/inner/key"), 0);
        hidden_free(h);
}

static void parent_of(const struct hidden *h, const char *name, int want, const char *last)
{
        const char *found = NULL;
        int fd = -1, r = hidden_open_parent(h, *name == '/' ? name : in_top(name), &fd, &found);

        assert_int_equal(r, want);
        if (r == 0) {
                assert_string_equal(found, last);
                close(fd);
        }
}

static void nothing_is_put_there(void **state)
{
        (void)state;
        struct hidden *h = make();
        parent_of(h, "own/new", HIDDEN_INSIDE, NULL);
        parent_of(h, "link/new", HIDDEN_INSIDE, NULL);
        parent_of(h, "owner/new", 0, "new");
        parent_of(h, "owner/", -EINVAL, NULL);
        parent_of(h, "owner/..", -EINVAL, NULL);
        parent_of(h, "nowhere/new", -ENOENT, NULL);
        parent_of(h, "/tmp", 0, "tmp");
        parent_of(NULL, "own/new", 0, "new");
        const char *name;
        int fd;
        assert_int_equal(hidden_open_parent(h, "relative", &fd, &name), -EINVAL);
        hidden_free(h);
}

static void a_folder_that_is_renamed_stays_hidden(void **state)
{
        (void)state;
        char from[160];
        struct hidden *h = make();
        snprintf(from, sizeof(from), "%s", in_top("own"));
        assert_int_equal(rename(from, in_top("moved")), 0);
        assert_int_equal(look(h, "moved/inner/key"), HIDDEN_INSIDE);
        snprintf(from, sizeof(from), "%s", in_top("moved"));
        assert_int_equal(rename(from, in_top("own")), 0);
        hidden_free(h);
}

static char *beneath(const struct hidden *h, const char *folder, size_t n)
{
        int fd = open(folder, O_PATH | O_CLOEXEC);

        assert_true(fd >= 0);
        char *found = hidden_beneath(h, fd, n);
        close(fd);
        return found;
}

static void those_beneath_a_folder_are_listed(void **state)
{
        (void)state;
        struct hidden *h = make();
        MEM_CLEANUP char *one = beneath(h, top, 0), *of_root = beneath(h, "/", 0);
        assert_string_equal(one, "own");
        assert_string_equal(of_root, in_top("own") + 1);
        assert_null(beneath(h, top, 1));
        assert_null(beneath(h, in_top("owner"), 0));
        assert_null(beneath(h, in_top("own"), 0));
        assert_null(beneath(NULL, top, 0));
        hidden_free(h);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_is_open_says_where_it_is, begin, end),
                cmocka_unit_test_setup_teardown(nothing_is_put_there, begin, end),
                cmocka_unit_test_setup_teardown(a_folder_that_is_renamed_stays_hidden, begin, end),
                cmocka_unit_test_setup_teardown(those_beneath_a_folder_are_listed, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
