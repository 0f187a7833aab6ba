#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/fs.h"

static char top[64];
static int dir;

static int setup(void **state)
{
        (void)state;
        strncpy(top, "/tmp/drover-fs-XXXXXX", sizeof(top) - 1);
        assert_non_null(mkdtemp(top));
        dir = open(top, O_RDONLY | O_DIRECTORY);
        return dir < 0;
}

static int teardown(void **state)
{
        (void)state;
        close(dir);
        assert_int_equal(fs_remove_tree(AT_FDCWD, top), 0);
        return access(top, F_OK) == 0;
}

static void stays_beneath(void **state)
{
        (void)state;
        assert_int_equal(mkdirat(dir, "in", 0700), 0);
        int in = openat(dir, "in", O_RDONLY | O_DIRECTORY);
        assert_int_equal(symlinkat("/etc", in, "away"), 0);
        assert_int_equal(symlinkat("../..", in, "up"), 0);
        assert_int_equal(fs_open_beneath(in, "../x", O_RDONLY, 0), -EXDEV);
        assert_int_equal(fs_open_beneath(in, "/etc/passwd", O_RDONLY, 0), -EXDEV);
        assert_int_equal(fs_open_beneath(in, "away/passwd", O_RDONLY, 0), -EXDEV);
        assert_int_equal(fs_open_beneath(in, "up/x", O_RDONLY, 0), -EXDEV);
        int fd = fs_open_beneath(in, "f", O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0);
        close(fd);
        const char *name;
        assert_int_equal(fs_open_parent(in, "away/x", &name), -EXDEV);
        assert_int_equal(fs_open_parent(in, "a/..", &name), -EINVAL);
        assert_int_equal(fs_open_parent(in, "", &name), -EINVAL);
        fd = fs_open_parent(in, "f", &name);
        assert_true(fd >= 0);
        assert_string_equal(name, "f");
        close(fd);
        assert_int_equal(fs_mkdirs_beneath(in, "a/b//c", 0700), 0);
        assert_int_equal(faccessat(in, "a/b/c", F_OK, 0), 0);
        assert_int_equal(fs_mkdirs_beneath(in, "a/../../x", 0700), -EINVAL);
        assert_int_equal(fs_mkdirs_beneath(in, "away/x", 0700), -EXDEV);
        close(in);
}

static void reads_only_files_of_others(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf b = {0};
        assert_int_equal(fs_write(dir, "plain", STR("text"), 0600, false, NULL), 0);
        assert_int_equal(symlinkat("plain", dir, "link"), 0);
        assert_int_equal(mkfifoat(dir, "pipe", 0600), 0); /* nobody writes to it */
        assert_int_equal(fs_read_regular(dir, "plain", 4, &b, NULL), 0);
        assert_string_equal(buf_z(&b), "text");
        assert_int_equal(fs_read_regular(dir, "link", 4, &b, NULL), -ELOOP);
        assert_int_equal(fs_read_regular(dir, "pipe", 4, &b, NULL), -EINVAL);
        assert_int_equal(fs_read_regular(dir, ".", 4, &b, NULL), -EINVAL);
        assert_int_equal(fs_read_regular(dir, "plain", 3, &b, NULL), -EFBIG);
        assert_string_equal(buf_z(&b), "text");
}

static void reads_secrets_that_are_kept(void **state)
{
        (void)state;
        static const struct {
                uid_t owner;
                mode_t mode;
                int r;
        } files[] = {{1, 0600, 0},      {1, 0400, 0},      {1, 0640, -EPERM}, {1, 0604, -EPERM},
                     {1, 0620, -EPERM}, {0, 0640, 0},      {0, 0440, 0},      {0, 0644, -EPERM},
                     {0, 0660, -EPERM}, {0, 0602, -EPERM}, {0, 0600, 0}};
        BUF_CLEANUP struct buf b = {0};
        for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
                uid_t owner = geteuid() == 0 ? files[i].owner : geteuid();

                if (owner != files[i].owner && files[i].owner == 0)
                        continue; /* only root makes files of root's */
                assert_int_equal(fs_write(dir, "secret", STR("x"), files[i].mode, false, NULL), 0);
                assert_int_equal(fchownat(dir, "secret", owner, (gid_t)-1, 0), 0);
                buf_reset(&b);
                assert_int_equal(fs_read_secret(dir, "secret", 8, &b, NULL), files[i].r);
                assert_int_equal(b.n, files[i].r == 0 ? 1 : 0);
        }
        int ends[2];
        char name[32];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], "piped", 5), 5);
        close(ends[1]);
        snprintf(name, sizeof(name), "/dev/fd/%d", ends[0]);
        buf_reset(&b);
        assert_int_equal(fs_read_secret(AT_FDCWD, name, 8, &b, NULL), 0);
        assert_string_equal(buf_z(&b), "piped");
        close(ends[0]);
        assert_int_equal(fs_read_secret(dir, "no-such-file", 8, &b, NULL), -ENOENT);
}

static void writes_whole_files(void **state)
{
        (void)state;
        struct err err;
        BUF_CLEANUP struct buf b = {0};
        assert_int_equal(fs_write(dir, "x", STR("one"), 0640, true, &err), 0);
        assert_int_equal(fs_write(dir, "x", STR("second"), 0600, false, &err), 0);
        assert_int_equal(fs_read(dir, "x", 6, &b, &err), 0);
        assert_string_equal(buf_z(&b), "second");
        assert_int_equal(fs_read(dir, "x", 5, &b, &err), -EFBIG);
        assert_string_equal(buf_z(&b), "second");
        struct stat st;
        assert_int_equal(fstatat(dir, "x", &st, 0), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(fs_write(dir, "no/x", STR("y"), 0600, false, &err), -ENOENT);
        assert_non_null(strstr(err.text, "no/x"));
        assert_int_equal(fs_read(dir, "absent", 6, &b, &err), -ENOENT);
}

static void killed_writes_are_swept(void **state)
{
        static const struct {
                const char *name;
                bool left;
        } files[] = {
                {"journal.0a1b2c3d.tmp", true}, {".x.00000000.tmp", true},   {"journal", false},
                {"journal.tmp", false},         {".0a1b2c3d.tmp", false},    {"a.0a1b2c3.tmp", false},
                {"a.0A1B2C3D.tmp", false},      {"a.0a1b2c3d.tmp.x", false}, {"a-0a1b2c3d.tmp", false},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
                assert_int_equal(fs_write(dir, files[i].name, STR("x"), 0600, false, NULL), 0);
        assert_int_equal(mkdirat(dir, "d.0a1b2c3d.tmp", 0700), 0);
        assert_int_equal(fs_sweep(dir, fs_is_left), 2);
        for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
                assert_int_equal(faccessat(dir, files[i].name, F_OK, 0) != 0, files[i].left);
        assert_int_equal(faccessat(dir, "d.0a1b2c3d.tmp", F_OK, 0), 0);
        assert_int_equal(fs_sweep(-1, fs_is_left), 0);
}

static void copies(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf b = {0};
        for (int i = 0; i < 40000; i++)
                buf_printf(&b, "%d\n", i);
        assert_int_equal(fs_write(dir, "big", buf_view(&b), 0600, false, NULL), 0);
        int from = openat(dir, "big", O_RDONLY), to = openat(dir, "copy", O_WRONLY | O_CREAT, 0600);
        uint64_t n = 0;
        assert_int_equal(fs_copy(from, to, &n), 0);
        assert_int_equal(n, b.n);
        close(from);
        close(to);
        BUF_CLEANUP struct buf c = {0};
        assert_int_equal(fs_read(dir, "copy", b.n, &c, NULL), 0);
        assert_true(str_eq(buf_view(&b), buf_view(&c)));
        from = open("/proc/self/status", O_RDONLY);
        to = openat(dir, "status", O_WRONLY | O_CREAT, 0600);
        assert_int_equal(fs_copy(from, to, &n), 0);
        assert_true(n > 100);
        close(from);
        close(to);
}

static void copies_of_holes_have_holes(void **state)
{
        (void)state;
        struct stat st;
        struct fs_pace pace = {0};
        uint64_t n = 0;
        char end[4] = "";
        int from = openat(dir, "hole", O_RDWR | O_CREAT, 0600),
            to = openat(dir, "far", O_RDWR | O_CREAT, 0600);
        if (ftruncate(from, (off_t)1 << 40) < 0 || pwrite(from, "end", 3, ((off_t)1 << 40) - 3) != 3)
                skip();
        assert_int_equal(fs_copy_paced(from, to, &pace, &n), 0);
        assert_true(n == 1ull << 40 && pace.steps > 0);
        assert_true(fstat(to, &st) == 0 && st.st_size == (off_t)1 << 40 && st.st_blocks < 1024);
        assert_int_equal(pread(to, end, 3, ((off_t)1 << 40) - 3), 3);
        assert_string_equal(end, "end");
        assert_true(lseek(from, 0, SEEK_SET) == 0 && lseek(to, 0, SEEK_SET) == 0 && ftruncate(to, 0) == 0);
        pace.cancelled = true;
        assert_int_equal(fs_copy_paced(from, to, &pace, &n), -ECANCELED);
        close(from);
        close(to);
}

static void removal_follows_no_links(void **state)
{
        (void)state;
        assert_int_equal(fs_mkdirs_beneath(dir, "keep", 0700), 0);
        assert_int_equal(fs_write(dir, "keep/file", STR("z"), 0600, false, NULL), 0);
        assert_int_equal(fs_mkdirs_beneath(dir, "t/a/b", 0700), 0);
        assert_int_equal(symlinkat("../../keep", dir, "t/link"), 0);
        assert_int_equal(symlinkat("../../../keep", dir, "t/a/link"), 0);
        assert_int_equal(fs_write(dir, "t/a/b/file", STR("z"), 0400, false, NULL), 0);
        assert_true(fs_tree_bytes(dir, "t", 0) > 0);
        assert_int_equal(fchmodat(dir, "t/a", 0, 0), 0);
        assert_int_equal(fs_remove_tree(dir, "t"), 0);
        assert_int_equal(faccessat(dir, "t", F_OK, 0), -1);
        assert_int_equal(faccessat(dir, "keep/file", F_OK, 0), 0);
        assert_int_equal(symlinkat("keep", dir, "l"), 0);
        assert_int_equal(fs_remove_tree(dir, "l"), 0);
        assert_int_equal(faccessat(dir, "keep/file", F_OK, 0), 0);
        assert_int_equal(fs_remove_tree(dir, "l"), -ENOENT);
}

static void makes_directories(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf b = {0};
        buf_printf(&b, "%s/m/n/o", top);
        assert_int_equal(fs_mkdirs(buf_z(&b), 0700), 0);
        assert_int_equal(fs_mkdirs(buf_z(&b), 0700), 0);
        assert_int_equal(fs_write(dir, "m/file", STR(""), 0600, false, NULL), 0);
        buf_reset(&b);
        buf_printf(&b, "%s/m/file", top);
        assert_int_equal(fs_mkdirs(buf_z(&b), 0700), -ENOTDIR);
        char domain[96];
        fs_domain(domain, sizeof(domain));
        assert_non_null(strchr(domain, ':'));
}

/* Deeper than descriptors reach, and with a name at the top that the removal would take for itself. */
static void removes_deep_trees(void **state)
{
        (void)state;
        assert_int_equal(mkdirat(dir, "t", 0700), 0);
        int at = openat(dir, "t", O_RDONLY | O_DIRECTORY);
        assert_int_equal(mkdirat(at, ".drover_deep.0", 0700), 0);
        for (int i = 0; i < 2000; i++) {
                assert_int_equal(mkdirat(at, "d", 0700), 0);
                int below = openat(at, "d", O_RDONLY | O_DIRECTORY);
                close(at);
                at = below;
        }
        assert_true(at >= 0);
        close(at);
        assert_int_equal(fs_remove_tree(dir, "t"), 0);
        assert_int_equal(faccessat(dir, "t", F_OK, 0), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(stays_beneath),
                cmocka_unit_test(writes_whole_files),
                cmocka_unit_test(reads_only_files_of_others),
                cmocka_unit_test(reads_secrets_that_are_kept),
                cmocka_unit_test(copies),
                cmocka_unit_test(copies_of_holes_have_holes),
                cmocka_unit_test(removes_deep_trees),
                cmocka_unit_test(killed_writes_are_swept),
                cmocka_unit_test(removal_follows_no_links),
                cmocka_unit_test(makes_directories),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
