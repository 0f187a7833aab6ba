#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/transfer/cache.h"
#include "base/mem.h"
#include "base/system/fs.h"

static char top[64], folder[96];
static int dir;

static struct cache *open_it(uint64_t limit)
{
        struct err err = {""};
        struct cache *c = cache_open(dir, "cache", folder, limit, &err);

        assert_string_equal(err.text, "");
        return c;
}

static struct cached *keep(struct cache *c, const char *text, int64_t now_ms)
{
        char part[32];
        unsigned char sum[32];
        struct cached *e = NULL;
        int fd = cache_begin(c, part);

        assert_true(fd >= 0);
        assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
        close(fd);
        SHA256((const unsigned char *)text, strlen(text), sum);
        assert_int_equal(cache_keep(c, part, sum, strlen(text), now_ms, &e), 0);
        return e;
}

static struct cached *keep_named(struct cache *c, const char *text, const char *key, int64_t now_ms)
{
        struct cached *e = keep(c, text, now_ms);
        struct move_facts f = {.size = strlen(text), .modified_s = 99, .etag = "\"x\""};

        cache_name(c, e, str_of(key), &f, now_ms);
        return e;
}

static unsigned files_in_folder(void)
{
        BUF_CLEANUP struct buf b = {0};
        unsigned n = 0;

        buf_printf(&b, "ls %s | wc -l", folder);
        FILE *p = popen(buf_z(&b), "r");
        assert_int_equal(fscanf(p, "%u", &n), 1);
        pclose(p);
        return n;
}

static void contents_are_there_once(void **state)
{
        struct cache *c = open_it(1000);

        (void)state;
        struct cached *a = keep_named(c, "hello", "https://a/x", 1),
                      *b = keep_named(c, "hello", "https://b/y", 2);
        assert_ptr_equal(a, b);
        assert_true(cache_bytes(c) == 5);
        assert_int_equal(files_in_folder(), 1);
        assert_ptr_equal(cache_find_name(c, STR("https://a/x"))->contents, a);
        /* new contents at a URL: the old ones stay under their other name */
        struct cached *d = keep_named(c, "other", "https://a/x", 3);
        assert_ptr_equal(cache_find_name(c, STR("https://a/x"))->contents, d);
        assert_ptr_equal(cache_find_name(c, STR("https://b/y"))->contents, a);
        assert_true(cache_bytes(c) == 10);
        cache_close(c);
}

static void the_longest_unused_goes_first(void **state)
{
        struct cache *c = open_it(12);

        (void)state;
        struct cached *a = keep_named(c, "aaaa", "https://s/a", 1),
                      *b = keep_named(c, "bbbb", "https://s/b", 2);
        keep_named(c, "cccc", "https://s/c", 3);
        cache_touch(c, a, 4);
        cache_pin(b);
        keep_named(c, "dddd", "https://s/d", 5);
        cache_trim(c, 12);
        /* b was the oldest, and is pinned; then c was */
        assert_null(cache_find_name(c, STR("https://s/c")));
        assert_non_null(cache_find_name(c, STR("https://s/b")));
        assert_non_null(cache_find_name(c, STR("https://s/a")));
        assert_true(cache_bytes(c) == 12);
        cache_trim(c, 0);
        assert_true(cache_bytes(c) == 4);
        keep(c, "much too long for it", 6);
        assert_true(cache_bytes(c) == 24);
        cache_unpin(c, b);
        assert_true(cache_bytes(c) <= 12);
        assert_int_equal(files_in_folder(), cache_bytes(c) > 0);
        cache_close(c);
}

static void a_restart_finds_it_unchecked(void **state)
{
        struct cache *c = open_it(1000);
        unsigned char sum[32];
        char part[32];

        (void)state;
        keep_named(c, "hello", "https://a/x", 7);
        keep(c, "shipped", 8);
        cache_close(c);
        /* a crash leaves a partial file, and an index without the last contents */
        c = open_it(1000);
        assert_true(cache_begin(c, part) >= 0);
        keep(c, "unknown to the index", 9);
        assert_int_equal(files_in_folder(), 5); /* with the index */
        struct cache *again = open_it(1000);
        struct cached_name *n = cache_find_name(again, STR("https://a/x"));
        assert_non_null(n);
        assert_true(n->facts.size == 5 && n->facts.modified_s == 99 && n->confirmed_ms == 7);
        assert_string_equal(n->facts.etag, "\"x\"");
        assert_false(n->contents->checked);
        SHA256((const unsigned char *)"unknown to the index", 20, sum);
        assert_non_null(cache_find(again, sum));
        assert_int_equal(files_in_folder(), 4);
        /* a file fetched again replaces unverified contents */
        assert_ptr_equal(keep(again, "hello", 10), n->contents);
        assert_true(n->contents->checked);
        cache_close(again);
        cache_close(c);
}

/* A damaged or forged index cannot name contents that do not exist; a torn one is ignored. */
static void a_torn_index_is_left_alone(void **state)
{
        BUF_CLEANUP struct buf good = {0};
        struct cache *c = open_it(1000);

        (void)state;
        keep_named(c, "hello", "https://a/x", 7);
        cache_close(c);
        BUF_CLEANUP struct buf path = {0};
        buf_printf(&path, "%s/index", folder);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 1 << 20, &good, NULL), 0);
        for (size_t i = 0; i < good.n; i++) {
                good.p[i] ^= 4;
                assert_int_equal(fs_write(AT_FDCWD, buf_z(&path), buf_view(&good), 0600, false, NULL), 0);
                good.p[i] ^= 4;
                c = open_it(1000);
                assert_null(cache_find_name(c, STR("https://a/x")));
                assert_true(cache_bytes(c) == 5);
                cache_close(c);
        }
        /* contents of another size than the index says are not its */
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&path), buf_view(&good), 0600, false, NULL), 0);
        BUF_CLEANUP struct buf cut = {0};
        buf_printf(&cut, "for f in %s/????????*; do case $f in */index) ;; *) truncate -s 3 $f;; esac; done",
                   folder);
        assert_int_equal(system(buf_z(&cut)), 0);
        c = open_it(1000);
        assert_null(cache_find_name(c, STR("https://a/x")));
        cache_close(c);
}

struct heard {
        unsigned came, went;
        uint64_t id;
};

static void hear(void *arg, uint64_t id, uint64_t size)
{
        struct heard *h = arg;

        h->came += size != UINT64_MAX;
        h->went += size == UINT64_MAX;
        h->id = id;
}

static void changes_are_told_once(void **state)
{
        struct cache *c = open_it(1000);
        struct heard h = {0};

        (void)state;
        struct cached *e = keep_named(c, "hello", "https://a/x", 1);
        assert_true(cache_changed(c));
        cache_changes(c, false, hear, &h);
        assert_true(h.came == 2 && h.went == 0); /* reported by its URL and by its checksum */
        assert_false(cache_changed(c));
        cache_drop(c, keep(c, "gone before it was told", 2));
        h = (struct heard){0};
        cache_changes(c, false, hear, &h);
        assert_true(h.came == 0 && h.went == 0);
        cache_changes(c, true, hear, &h);
        assert_true(h.came == 2 && h.went == 0);
        cache_drop(c, e);
        h = (struct heard){0};
        cache_changes(c, false, hear, &h);
        assert_true(h.came == 0 && h.went == 2);
        cache_other(c, 99, 1 << 20);
        h = (struct heard){0};
        cache_changes(c, false, hear, &h);
        assert_true(h.came == 1 && h.id == 99);
        cache_other(c, 99, UINT64_MAX);
        cache_changes(c, false, hear, &h);
        assert_true(h.went == 1);
        cache_close(c);
}

static void keep_many(struct cache *c, unsigned first, unsigned count)
{
        for (unsigned i = first; i < first + count; i++) {
                char text[16], key[40];

                snprintf(text, sizeof(text), "%u", i);
                snprintf(key, sizeof(key), "https://a/%u", i);
                keep_named(c, text, key, i);
        }
}

/* However small files are, there are not more than so many, nor of their names. */
static void small_files_and_names_are_counted(void **state)
{
        struct cache *c = open_it(1ull << 40);
        char key[40];

        (void)state;
        struct cached *first = keep_named(c, "hello", "https://a/first", 1);
        for (unsigned i = 0; i < 1000; i++) {
                snprintf(key, sizeof(key), "https://b/%u", i);
                keep_named(c, "hello", key, 2);
        }
        assert_null(cache_find_name(c, STR("https://a/first")));
        assert_null(cache_find_name(c, STR("https://b/899")));
        assert_ptr_equal(cache_find_name(c, STR("https://b/901"))->contents, first);
        cache_pin(first);
        keep_many(c, 0, CACHE_FILES_MAX);
        cache_unpin(c, first);
        assert_true(files_in_folder() <= CACHE_FILES_MAX);
        assert_null(cache_find_name(c, STR("https://b/901")));
        assert_non_null(cache_find_name(c, STR("https://a/99999")));
        cache_close(c);
}

static int setup(void **state)
{
        (void)state;
        strncpy(top, "/tmp/drover-cache-XXXXXX", sizeof(top) - 1);
        if (!mkdtemp(top))
                return -1;
        snprintf(folder, sizeof(folder), "%s/cache", top);
        dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dir < 0;
}

static int teardown(void **state)
{
        (void)state;
        close(dir);
        return fs_remove_tree(AT_FDCWD, top);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(contents_are_there_once, setup, teardown),
                cmocka_unit_test_setup_teardown(the_longest_unused_goes_first, setup, teardown),
                cmocka_unit_test_setup_teardown(a_restart_finds_it_unchecked, setup, teardown),
                cmocka_unit_test_setup_teardown(a_torn_index_is_left_alone, setup, teardown),
                cmocka_unit_test_setup_teardown(changes_are_told_once, setup, teardown),
                cmocka_unit_test_setup_teardown(small_files_and_names_are_counted, setup, teardown)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
