#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "jdl/form/dataset.h"

/* What must hold of any pieces: each file is in one, in order, with those of its group only, under the
 * limits unless it is alone or was merged. */
static void check(const struct dataset_file *files, size_t count, const struct dataset_limits *l,
                  const struct dataset_piece *d, size_t n)
{
        size_t next = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t bytes = 0, events = 0;

                assert_int_equal(d[i].first, next);
                assert_true(d[i].count > 0);
                for (size_t k = next; k < next + d[i].count; k++) {
                        assert_true(k < count);
                        assert_int_equal(files[k].group, d[i].group);
                        bytes += files[k].bytes;
                        events += files[k].events;
                }
                next += d[i].count;
                assert_int_equal(bytes, d[i].bytes);
                assert_int_equal(events, d[i].events);
                if (d[i].count == 1 || l->files_min > 1)
                        continue;
                assert_true(!l->files_max || d[i].count <= l->files_max);
                assert_true(!l->bytes_max || bytes <= l->bytes_max);
                assert_true(!l->events_max || events <= l->events_max);
        }
        assert_int_equal(next, count);
}

static size_t split(const struct dataset_file *files, size_t count, struct dataset_limits l,
                    size_t counts[64])
{
        struct dataset_piece *d, *again;
        size_t n = dataset_split(files, count, &l, &d);

        check(files, count, &l, d, n);
        assert_int_equal(dataset_split(files, count, &l, &again), n);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(d[i].count, again[i].count);
                if (i < 64)
                        counts[i] = d[i].count;
        }
        free(d);
        free(again);
        return n;
}

static void by_files(void **state)
{
        struct dataset_file files[23] = {{0}};
        size_t c[64];

        (void)state;
        assert_int_equal(split(files, 23, (struct dataset_limits){.files_max = 10}, c), 3);
        assert_true(c[0] == 8 && c[1] == 8 && c[2] == 7);
        assert_int_equal(split(files, 20, (struct dataset_limits){.files_max = 10}, c), 2);
        assert_int_equal(split(files, 23, (struct dataset_limits){.files_max = 100}, c), 1);
        assert_int_equal(split(files, 23, (struct dataset_limits){.files_max = UINT64_MAX}, c), 1);
        assert_int_equal(split(files, 0, (struct dataset_limits){.files_max = 10}, c), 0);
        assert_int_equal(split(files, 23, (struct dataset_limits){0}, c), 1);
        for (size_t i = 9; i < 23; i++)
                files[i].group = i < 10 ? 1 : 2;
        assert_int_equal(split(files, 23, (struct dataset_limits){.files_max = 5}, c), 6);
        assert_true(c[0] == 5 && c[1] == 4 && c[2] == 1 && c[3] == 5 && c[4] == 4 && c[5] == 4);
}

static void by_size(void **state)
{
        struct dataset_file files[8] = {{30}, {30}, {30}, {500}, {10}, {40}, {40}, {10}};
        size_t c[64];

        (void)state;
        assert_int_equal(split(files, 8, (struct dataset_limits){.bytes_max = 100}, c), 3);
        assert_true(c[0] == 3 && c[1] == 1 && c[2] == 4);
        /* The last two are evened out: 40 + 40, then 10 alone, becomes 40 and 50. */
        assert_int_equal(split(files + 5, 3, (struct dataset_limits){.bytes_max = 85}, c), 2);
        assert_true(c[0] == 1 && c[1] == 2);
        for (size_t i = 0; i < 8; i++)
                files[i].events = 7;
        assert_int_equal(split(files, 8, (struct dataset_limits){.events_max = 21}, c), 3);
        assert_int_equal(split(files, 8, (struct dataset_limits){.events_max = 1, .bytes_max = 50}, c), 8);
}

static void small_ones_are_merged(void **state)
{
        struct dataset_file files[11] = {{0}};
        size_t c[64];

        (void)state;
        for (size_t i = 8; i < 11; i++)
                files[i].group = i;
        /* 8 files as 4 + 4; groups of one have no neighbour */
        assert_int_equal(split(files, 11, (struct dataset_limits){.files_max = 4, .files_min = 3}, c), 5);
        for (size_t i = 0; i < 11; i++)
                files[i] = (struct dataset_file){.bytes = i == 0 ? 100 : 40};
        assert_int_equal(split(files, 11, (struct dataset_limits){.bytes_max = 100, .files_min = 2}, c), 5);
        assert_int_equal(c[0], 3);
}

static void anything_goes(void **state)
{
        struct dataset_file files[200];
        size_t c[64];
        uint64_t x = 88172645463325252ull;

        (void)state;
        for (unsigned round = 0; round < 2000; round++) {
                size_t n;
                uint32_t group = 0;

                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                n = x % 200;
                for (size_t i = 0; i < n; i++) {
                        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                        group += x % 10 == 0;
                        files[i] = (struct dataset_file){(x >> 8) % 100, (x >> 20) % 50, group};
                }
                split(files, n,
                      (struct dataset_limits){.files_max = x >> 32 & 15,
                                              .bytes_max = x >> 40 & 255,
                                              .events_max = x >> 50 & 127,
                                              .files_min = x & 1},
                      c);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(by_files),
                cmocka_unit_test(by_size),
                cmocka_unit_test(small_ones_are_merged),
                cmocka_unit_test(anything_goes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
