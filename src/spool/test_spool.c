#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "spool/spool.h"

#define ABC_HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* FIPS 180-2, B.1 */
#define ANN      STR("ann@local")

struct fixture {
        char top[64], folder[96];
        struct spool *s;
};

static void start(struct fixture *f, uint64_t object_max)
{
        struct err err = {0};

        if (spool_open(f->folder, object_max, &f->s, &err))
                fail_msg("%s", err.text);
}

static int setup(void **state)
{
        struct fixture *f = mem_new(struct fixture);

        strncpy(f->top, "/tmp/drover-spool-XXXXXX", sizeof(f->top) - 1);
        if (!mkdtemp(f->top))
                return 1;
        snprintf(f->folder, sizeof(f->folder), "%s/spool", f->top);
        start(f, 0);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;
        int r;

        spool_close(f->s);
        r = fs_remove_tree(AT_FDCWD, f->top);
        free(f);
        return r;
}

static void restart(struct fixture *f)
{
        spool_close(f->s);
        start(f, 0);
}

static const char *begin(struct fixture *f)
{
        static char id[UUID_TEXT];
        uint64_t size = 7;

        uuid_new(id);
        assert_int_equal(spool_upload_begin(f->s, id, ANN, &size, NULL), 0);
        assert_int_equal(size, 0);
        return id;
}

static int put(struct fixture *f, const char *id, uint64_t offset, struct str bytes, uint64_t *size)
{
        return spool_upload_write(f->s, id, offset, bytes, size, NULL);
}

static void expect_object(struct fixture *f, const char *hash, struct str bytes)
{
        BUF_CLEANUP struct buf got = {0};
        uint64_t size = 0;
        char chunk[4096];
        ssize_t n;
        int fd = -1;

        assert_int_equal(spool_object_open(f->s, str_of(hash), &fd, &size), 0);
        assert_int_equal(size, bytes.n);
        while ((n = read(fd, chunk, sizeof(chunk))) > 0)
                buf_add(&got, chunk, (size_t)n);
        close(fd);
        assert_true(str_eq(buf_view(&got), bytes));
}

static void a_file_comes_in(void **state)
{
        struct fixture *f = *state;
        const char *id = begin(f);
        char hash[SPOOL_HASH_TEXT], path[256];
        uint64_t size = 0;
        struct stat st;
        int fd;

        assert_int_equal(put(f, id, 0, STR("a"), &size), 0);
        assert_int_equal(put(f, id, 1, STR("bc"), &size), 0);
        assert_int_equal(size, 3);
        assert_int_equal(spool_object_open(f->s, STR(ABC_HASH), &fd, NULL), SPOOL_NOT_FOUND);
        assert_int_equal(spool_finish_one(f->s, id, ABC_HASH, hash, &size, NULL), 0);
        assert_string_equal(hash, ABC_HASH);
        assert_int_equal(size, 3);
        expect_object(f, hash, STR("abc"));
        snprintf(path, sizeof(path), "%s/objects/ba/78/%s", f->folder, ABC_HASH);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 077, 0);
        /* Nothing of the upload is left. */
        assert_int_equal(put(f, id, 3, STR("d"), &size), SPOOL_NOT_FOUND);
        snprintf(path, sizeof(path), "%s/uploads", f->folder);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(mkdir(path, 0700), 0);
        restart(f);
        expect_object(f, hash, STR("abc"));
}

static void the_empty_file_too(void **state)
{
        struct fixture *f = *state;
        char hash[SPOOL_HASH_TEXT];
        uint64_t size = 7;

        assert_int_equal(spool_finish_one(f->s, begin(f), NULL, hash, &size, NULL), 0);
        assert_int_equal(size, 0);
        assert_string_equal(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        expect_object(f, hash, STR_NONE);
}

static void an_upload_goes_on_after_a_restart(void **state)
{
        struct fixture *f = *state;
        const char *id = begin(f);
        BUF_CLEANUP struct buf owner = {0};
        BUF_CLEANUP struct buf big = {0};
        char hash[SPOOL_HASH_TEXT], again[SPOOL_HASH_TEXT];
        uint64_t size = 0;

        for (int i = 0; i < 200000; i++)
                buf_char(&big, (char)(i * 31 + (i >> 9)));
        assert_int_equal(put(f, id, 0, str_head(buf_view(&big), 150000), &size), 0);
        restart(f);
        assert_int_equal(spool_upload_begin(f->s, id, STR("eve@local"), &size, NULL), SPOOL_NOT_FOUND);
        assert_int_equal(spool_upload_begin(f->s, id, ANN, &size, NULL), 0);
        assert_int_equal(size, 150000);
        assert_int_equal(spool_upload_owner(f->s, id, &owner), 0);
        assert_string_equal(buf_z(&owner), "ann@local");
        assert_int_equal(put(f, id, size, str_skip(buf_view(&big), 150000), &size), 0);
        assert_int_equal(spool_finish_one(f->s, id, NULL, hash, NULL, NULL), 0);
        expect_object(f, hash, buf_view(&big));
        /* Whole, the same bytes have the same hash. */
        id = begin(f);
        assert_int_equal(put(f, id, 0, buf_view(&big), &size), 0);
        assert_int_equal(spool_finish_one(f->s, id, hash, again, NULL, NULL), 0);
}

static void a_wrong_offset_tells_the_right_one(void **state)
{
        struct fixture *f = *state;
        const char *id = begin(f);
        char hash[SPOOL_HASH_TEXT];
        struct err err = {0};
        uint64_t size = 0;

        assert_int_equal(put(f, id, 0, STR("ab"), &size), 0);
        size = 77;
        assert_int_equal(spool_upload_write(f->s, id, 3, STR("c"), &size, &err), SPOOL_WRONG_OFFSET);
        assert_int_equal(size, 2);
        assert_non_null(strstr(err.text, "2 bytes"));
        assert_int_equal(put(f, id, 0, STR("ab"), &size), SPOOL_WRONG_OFFSET);
        assert_int_equal(put(f, id, 2, STR("c"), &size), 0);
        assert_int_equal(spool_finish_one(f->s, id, ABC_HASH, hash, NULL, NULL), 0);
}

static void a_wrong_hash_is_refused(void **state)
{
        struct fixture *f = *state;
        const char *id = begin(f);
        char hash[SPOOL_HASH_TEXT] = "";
        uint64_t size = 0;
        struct err err = {0};
        int fd;

        assert_int_equal(put(f, id, 0, STR("abd"), &size), 0);
        assert_int_equal(spool_finish_one(f->s, id, ABC_HASH, hash, NULL, &err), SPOOL_WRONG_HASH);
        assert_string_equal(hash, "");
        assert_non_null(strstr(err.text, ABC_HASH));
        assert_int_equal(spool_object_open(f->s, STR(ABC_HASH), &fd, NULL), SPOOL_NOT_FOUND);
        assert_int_equal(put(f, id, 3, STR("x"), &size), SPOOL_NOT_FOUND);
}

static void strange_names_are_not_found(void **state)
{
        static const char *const bad[] = {"", "..", "../../etc/passwd", "ba",
                                          "BA7816BF8F01CFEA414140DE5DAE2223B00361A"
                                          "396177A9CB410FF61F20015AD"};
        struct fixture *f = *state;
        char hash[SPOOL_HASH_TEXT];
        uint64_t size;
        int fd;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                assert_int_equal(spool_object_open(f->s, str_of(bad[i]), &fd, NULL), SPOOL_NOT_FOUND);
                assert_int_equal(spool_upload_begin(f->s, bad[i], ANN, &size, NULL), -EINVAL);
                assert_int_equal(put(f, bad[i], 0, STR("x"), &size), SPOOL_NOT_FOUND);
                assert_int_equal(spool_finish_one(f->s, bad[i], NULL, hash, NULL, NULL), SPOOL_NOT_FOUND);
                assert_int_equal(spool_upload_drop(f->s, bad[i]), SPOOL_NOT_FOUND);
        }
        assert_int_equal(
                spool_upload_begin(f->s, "01234567-89ab-cdef-0123-456789abcdef", STR_NONE, &size, NULL),
                -EINVAL);
}

/* A link put in an object's place is not followed. */
static void links_are_not_followed(void **state)
{
        struct fixture *f = *state;
        char path[256];
        int fd;

        snprintf(path, sizeof(path), "%s/objects/ba", f->folder);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/objects/ba/78", f->folder);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/objects/ba/78/%s", f->folder, ABC_HASH);
        assert_int_equal(symlink("/etc/passwd", path), 0);
        assert_int_not_equal(spool_object_open(f->s, STR(ABC_HASH), &fd, NULL), 0);
}

static void a_size_limit_holds(void **state)
{
        struct fixture *f = *state;
        const char *id;
        uint64_t size = 0;

        spool_close(f->s);
        start(f, 5);
        id = begin(f);
        assert_int_equal(put(f, id, 0, STR("123456"), &size), SPOOL_TOO_BIG);
        assert_int_equal(put(f, id, 0, STR("1234"), &size), 0);
        assert_int_equal(put(f, id, 4, STR("56"), &size), SPOOL_TOO_BIG);
        assert_int_equal(put(f, id, 4, STR("5"), &size), 0);
        assert_int_equal(size, 5);
}

/* The kernel takes a part of a write and refuses the rest. */
static void a_short_write_leaves_the_upload_as_it_was(void **state)
{
        struct fixture *f = *state;
        const char *id = begin(f);
        struct rlimit before, small;
        char hash[SPOOL_HASH_TEXT];
        uint64_t size = 0;
        int r;

        assert_int_equal(put(f, id, 0, STR("a"), &size), 0);
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        small = before;
        small.rlim_cur = 2;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        r = put(f, id, 1, STR("xy"), &size);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(r, -EFBIG);
        assert_int_equal(size, 1);
        assert_int_equal(put(f, id, 1, STR("bc"), &size), 0);
        assert_int_equal(spool_finish_one(f->s, id, ABC_HASH, hash, NULL, NULL), 0);
        expect_object(f, hash, STR("abc"));
}

static void many_finish_together(void **state)
{
        struct fixture *f = *state;
        struct spool_finish all[40] = {0};
        char ids[40][UUID_TEXT];
        uint64_t size;

        for (int i = 0; i < 40; i++) {
                char text[32];

                snprintf(text, sizeof(text), "file %d", i / 2); /* each twice */
                memcpy(ids[i], begin(f), UUID_TEXT);
                assert_int_equal(put(f, ids[i], 0, str_of(text), &size), 0);
                all[i].id = ids[i];
        }
        all[7].expect = ABC_HASH;
        all[9].id = "01234567-89ab-cdef-0123-456789abcdef";
        all[11].id = ids[10]; /* twice the same one */
        spool_finish(f->s, all, 40);
        for (int i = 0; i < 40; i++) {
                char text[32];
                int want = i == 7 ? SPOOL_WRONG_HASH : i == 9 ? SPOOL_NOT_FOUND : i == 11 ? -EBUSY : 0;

                assert_int_equal(all[i].result, want);
                snprintf(text, sizeof(text), "file %d", i / 2);
                if (want == 0)
                        expect_object(f, all[i].hash, str_of(text));
        }
}

/* ---- a disk that fails (the linker puts these in place of the calls) */

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);

static unsigned fails_in; /* the fails_in-th call from now; 0: none */
static int fails_with;

static bool fails(void)
{
        if (fails_in == 0 || --fails_in > 0)
                return false;
        errno = fails_with;
        return true;
}

int __wrap_fsync(int fd)
{
        return fails() ? -1 : __real_fsync(fd);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
        return fails() ? -1 : __real_renameat(from_dir, from, to_dir, to);
}

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
        int number = fails_with;

        if (!fails())
                return __real_write(fd, p, n);
        (void)!__real_write(fd, p, n / 2);
        errno = number;
        return -1;
}

/* All steps of three files that come in; what fails is done again, as who sends it does. How many failed. */
static unsigned bring_three(struct fixture *f, const char ids[3][UUID_TEXT], const char *const texts[3],
                            int expected)
{
        struct spool_finish all[3] = {0};
        unsigned failed = 0;

        for (int i = 0; i < 3; i++) {
                struct str text = str_of(texts[i]);
                uint64_t size = 0;
                int r = spool_upload_begin(f->s, ids[i], ANN, &size, NULL);

                if (r == 0)
                        r = put(f, ids[i], size, str_skip(text, (size_t)size), &size);
                if (r) {
                        assert_int_equal(r, expected);
                        failed++;
                        r = spool_upload_begin(f->s, ids[i], ANN, &size, NULL);
                        assert_true(r == 0 && size == 0); /* as it was: nothing torn counts */
                        assert_int_equal(put(f, ids[i], 0, text, &size), 0);
                }
                all[i].id = ids[i];
        }
        spool_finish(f->s, all, 3);
        for (int i = 0; i < 3; i++) {
                uint64_t size = 0;

                if (all[i].result == 0) {
                        expect_object(f, all[i].hash, str_of(texts[i]));
                        continue;
                }
                assert_int_equal(all[i].result, expected);
                assert_true(*all[i].err.text);
                failed++;
                assert_int_equal(spool_upload_begin(f->s, ids[i], ANN, &size, NULL), 0);
                if (size == 0)
                        assert_int_equal(put(f, ids[i], 0, str_of(texts[i]), &size), 0);
                assert_int_equal(spool_finish_one(f->s, ids[i], NULL, all[i].hash, NULL, NULL), 0);
                expect_object(f, all[i].hash, str_of(texts[i]));
        }
        return failed;
}

static void each_step_may_fail(void **state)
{
        static const int numbers[][2] = {
                {ENOSPC, SPOOL_FULL}, {EDQUOT, SPOOL_FULL}, {EIO, -EIO}, {EROFS, -EROFS}};
        struct fixture *f = *state;

        for (size_t k = 0; k < 4; k++) {
                unsigned n = 0;

                for (bool reached = true; reached;) {
                        char ids[3][UUID_TEXT], texts[3][64];
                        const char *const t[3] = {texts[0], texts[1], texts[2]};

                        n++;
                        for (int i = 0; i < 3; i++) {
                                uuid_new(ids[i]);
                                snprintf(texts[i], sizeof(texts[i]), "file %d of %u, with error %zu", i, n,
                                         k);
                        }
                        fails_in = n;
                        fails_with = numbers[k][0];
                        unsigned failed = bring_three(f, ids, t, numbers[k][1]);

                        reached = fails_in == 0;
                        fails_in = 0;
                        assert_int_equal(failed > 0, reached);
                        if (n % 5 == 0)
                                restart(f);
                }
                assert_true(n > 12); /* three times two writes, a rename and a flush at least, and folders */
        }
}

static int count_one(void *arg, struct str hash, uint64_t size, int64_t ms)
{
        assert_int_equal(hash.n, 64);
        assert_true(size > 0);
        assert_true(ms > 0);
        return ++*(int *)arg == 1000 ? 5 : 0;
}

static int objects(struct fixture *f)
{
        int count = 0;

        assert_int_equal(spool_object_list(f->s, count_one, &count, NULL), 0);
        return count;
}

static void store_text(struct fixture *f, const char *text, char hash[SPOOL_HASH_TEXT])
{
        const char *id = begin(f);
        uint64_t size;

        assert_int_equal(put(f, id, 0, str_of(text), &size), 0);
        assert_int_equal(spool_finish_one(f->s, id, NULL, hash, NULL, NULL), 0);
}

static bool want_one(void *arg, struct str hash)
{
        return str_eqz(hash, arg);
}

static void what_nobody_wants_is_collected(void **state)
{
        struct fixture *f = *state;
        char hash[3][SPOOL_HASH_TEXT];
        uint64_t bytes = 0;
        int fd;

        assert_int_equal(objects(f), 0);
        store_text(f, "one", hash[0]);
        store_text(f, "three", hash[1]);
        store_text(f, "three", hash[2]);
        assert_int_equal(objects(f), 2);
        assert_int_equal(spool_collect(f->s, 1000, want_one, hash[0], &bytes, NULL), 0);
        assert_int_equal(objects(f), 2); /* too young */
        assert_int_equal(bytes, 0);
        assert_int_equal(spool_collect(f->s, clock_wall_ms() + 5000, want_one, hash[0], &bytes, NULL), 0);
        assert_int_equal(objects(f), 1);
        assert_int_equal(bytes, 5);
        assert_int_equal(spool_object_open(f->s, str_of(hash[1]), &fd, NULL), SPOOL_NOT_FOUND);
}

static void old_uploads_expire(void **state)
{
        struct fixture *f = *state;
        char id[UUID_TEXT];
        uint64_t size;

        memcpy(id, begin(f), sizeof(id));
        assert_int_equal(put(f, id, 0, STR("x"), &size), 0);
        assert_int_equal(spool_upload_expire(f->s, 1000), 0);
        assert_int_equal(put(f, id, 1, STR("y"), &size), 0);
        assert_int_equal(spool_upload_expire(f->s, clock_wall_ms() + 5000), 1);
        assert_int_equal(put(f, id, 2, STR("z"), &size), SPOOL_NOT_FOUND);
        restart(f);
        assert_int_equal(put(f, id, 2, STR("z"), &size), SPOOL_NOT_FOUND);
}

static void half_a_beginning_is_cleared(void **state)
{
        static const char *const id = "01234567-89ab-cdef-0123-456789abcdef";
        struct fixture *f = *state;
        char path[256];
        uint64_t size = 7;
        int fd;

        snprintf(path, sizeof(path), "%s/uploads/%s", f->folder, id);
        fd = open(path, O_CREAT | O_WRONLY, 0600);
        assert_int_equal(write(fd, "left", 4), 4);
        close(fd);
        restart(f);
        assert_int_not_equal(access(path, F_OK), 0);
        assert_int_equal(spool_upload_begin(f->s, id, ANN, &size, NULL), 0);
        assert_int_equal(size, 0);
}

struct thread {
        struct fixture *f;
        int number;
};

static void *work(void *arg)
{
        struct thread *t = arg;

        for (int i = 0; i < 10; i++) {
                char id[UUID_TEXT], text[32], hash[SPOOL_HASH_TEXT];
                uint64_t size = 0;

                uuid_new(id);
                snprintf(text, sizeof(text), "text %d", (t->number + i) % 12);
                if (spool_upload_begin(t->f->s, id, ANN, &size, NULL) ||
                    put(t->f, id, 0, str_of(text), &size) ||
                    spool_finish_one(t->f->s, id, NULL, hash, NULL, NULL))
                        return (void *)"failed";
        }
        return NULL;
}

static void threads_may_work_together(void **state)
{
        struct fixture *f = *state;
        struct thread t[4];
        pthread_t ids[4];

        for (int i = 0; i < 4; i++) {
                t[i] = (struct thread){f, i};
                assert_int_equal(pthread_create(&ids[i], NULL, work, &t[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
                void *failed = NULL;

                pthread_join(ids[i], &failed);
                assert_null(failed);
        }
        assert_int_equal(objects(f), 12);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static void uploads_count_for_their_owner(void **state)
{
        struct fixture *f = *state;
        char first[UUID_TEXT], hash[SPOOL_HASH_TEXT];
        uint64_t size;
        size_t count;

        memcpy(first, begin(f), UUID_TEXT);
        assert_int_equal(put(f, first, 0, STR("abc"), &size), 0);
        assert_int_equal(put(f, begin(f), 0, STR("defg"), &size), 0);
        assert_int_equal(spool_upload_held(f->s, ANN, &count), 7);
        assert_int_equal(count, 2);
        restart(f);
        assert_int_equal(spool_upload_held(f->s, ANN, &count), 7);
        assert_int_equal(put(f, first, 0, STR("x"), &size), SPOOL_WRONG_OFFSET);
        assert_int_equal(spool_finish_one(f->s, first, NULL, hash, NULL, NULL), 0);
        assert_int_equal(spool_upload_held(f->s, ANN, &count), 4);
        assert_int_equal(count, 1);
        assert_int_equal(spool_upload_held(f->s, STR("bob@local"), &count), 0);
        assert_int_equal(spool_upload_expire(f->s, clock_wall_ms() + 60000), 1);
        assert_int_equal(spool_upload_held(f->s, ANN, &count), 0);
        assert_int_equal(count, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(a_file_comes_in),
                T(the_empty_file_too),
                T(an_upload_goes_on_after_a_restart),
                T(a_wrong_offset_tells_the_right_one),
                T(a_wrong_hash_is_refused),
                T(strange_names_are_not_found),
                T(links_are_not_followed),
                T(a_size_limit_holds),
                T(a_short_write_leaves_the_upload_as_it_was),
                T(many_finish_together),
                T(each_step_may_fail),
                T(what_nobody_wants_is_collected),
                T(old_uploads_expire),
                T(uploads_count_for_their_owner),
                T(half_a_beginning_is_cleared),
                T(threads_may_work_together),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
