#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/transfer/link_file.h"
#include "base/system/fs.h"

#define DAY_MS 86400000LL
#define NOW_MS 1700000000000LL

static char top[32];
static int dir = -1;

static void write_two(void)
{
        struct link_file l = {0};
        const struct probe_estimate lab = {.latency_us = 300,
                                           .bytes_per_s = {5000000, 0},
                                           .latency_ms = 90000,
                                           .rate_ms = {40000, 0}},
                                    spool = {.bytes_per_s = {7, 8}, .rate_ms = {99000, 98000}};

        link_file_add(&l, "lab", STR("https://se.lab/"), &lab);
        link_file_add(&l, "", STR_NONE, &spool);
        assert_int_equal(link_file_write(&l, dir, 100000, NOW_MS), 0);
        link_file_deinit(&l);
}

/* After a reboot an hour later the boot clock is behind; ages continue. */
static void ages_go_on(void **state)
{
        (void)state;
        struct link_file l;
        write_two();
        link_file_read(&l, dir, 60000, NOW_MS + 3600000);
        const struct probe_estimate *e = link_file_find(&l, "lab", STR("https://se.lab/"));
        assert_non_null(e);
        assert_int_equal(e->latency_us, 300);
        assert_int_equal(e->bytes_per_s[PROBE_IN], 5000000);
        assert_int_equal(e->latency_ms, 60000 - 3600000 - 10000);
        assert_int_equal(e->rate_ms[PROBE_IN], 60000 - 3600000 - 60000);
        assert_true(e->bytes_per_s[PROBE_OUT] == 0 && e->rate_ms[PROBE_OUT] == 0);
        e = link_file_find(&l, "", STR_NONE);
        assert_true(e && e->bytes_per_s[PROBE_IN] == 7 && e->bytes_per_s[PROBE_OUT] == 8);
        assert_null(link_file_find(&l, "lab", STR("https://elsewhere.lab/")));
        assert_null(link_file_find(&l, "other", STR("https://se.lab/")));
        link_file_deinit(&l);
}

/* A new measurement outweighs old ones, and each value that is too old is dropped. */
static void old_numbers_fade(void **state)
{
        (void)state;
        struct link_file l;
        write_two();
        link_file_read(&l, dir, 5000000, NOW_MS + 2 * DAY_MS);
        struct probe_estimate e = *link_file_find(&l, "lab", STR("https://se.lab/"));
        probe_estimate_rate(&e, PROBE_IN, 1000000, 1000300, 5000000);
        assert_in_range(e.bytes_per_s[PROBE_IN], 1000000, 1500000);
        link_file_deinit(&l);
        link_file_read(&l, dir, 5000000, NOW_MS + LINK_FILE_DAYS * DAY_MS - 50000);
        e = *link_file_find(&l, "lab", STR("https://se.lab/"));
        assert_true(e.latency_us == 300 && e.bytes_per_s[PROBE_IN] == 0 && e.rate_ms[PROBE_IN] == 0);
        link_file_deinit(&l);
}

/* A clock that was set back makes no value impossibly old; "never" is no time. */
static void clocks_jump(void **state)
{
        (void)state;
        struct link_file l;
        write_two();
        link_file_read(&l, dir, 1000, NOW_MS - DAY_MS);
        assert_int_equal(link_file_find(&l, "lab", STR("https://se.lab/"))->latency_ms, 1000);
        link_file_deinit(&l);
        link_file_read(&l, dir, 3610000, NOW_MS + 3600000);
        assert_int_equal(link_file_find(&l, "lab", STR("https://se.lab/"))->latency_ms, -1);
        link_file_deinit(&l);
}

static void damage_says_nothing(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf b = {0};
        struct link_file l;
        write_two();
        assert_int_equal(fs_read(dir, LINK_FILE, 4096, &b, NULL), 0);
        for (size_t i = 0; i <= b.n; i++) {
                if (i < b.n)
                        b.p[i] ^= 1;
                assert_int_equal(
                        fs_write(dir, LINK_FILE, str_make(b.p, i < b.n ? b.n : i / 2), 0600, false, NULL), 0);
                if (i < b.n)
                        b.p[i] ^= 1;
                link_file_read(&l, dir, 1000, NOW_MS);
                assert_int_equal(l.count, 0);
                link_file_deinit(&l);
        }
        unlinkat(dir, LINK_FILE, 0);
        link_file_read(&l, dir, 1000, NOW_MS);
        assert_int_equal(l.count, 0);
}

static int setup(void **state)
{
        (void)state;
        snprintf(top, sizeof(top), "/tmp/test-links-XXXXXX");
        if (!mkdtemp(top))
                return 1;
        dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dir < 0;
}

static int teardown(void **state)
{
        (void)state;
        unlinkat(dir, LINK_FILE, 0);
        close(dir);
        return rmdir(top);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(ages_go_on, setup, teardown),
                cmocka_unit_test_setup_teardown(old_numbers_fade, setup, teardown),
                cmocka_unit_test_setup_teardown(clocks_jump, setup, teardown),
                cmocka_unit_test_setup_teardown(damage_says_nothing, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
