#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/map.h"

static int values[4];

static void basics(void **state)
{
        struct map *m = map_new();
        char key[] = "one";

        (void)state;
        assert_null(map_get(m, STR("one")));
        assert_null(map_take(m, STR("one")));
        assert_null(map_put(m, str_of(key), &values[0]));
        key[0] = 'x'; /* the map has its own copy */
        assert_ptr_equal(map_get(m, STR("one")), &values[0]);
        assert_null(map_get(m, STR("One")));
        assert_ptr_equal(map_put(m, STR("one"), &values[1]), &values[0]);
        assert_int_equal(map_count(m), 1);
        assert_null(map_put(m, STR(""), &values[2]));
        assert_ptr_equal(map_get(m, STR_NONE), &values[2]);
        assert_null(map_put(m, str_make("a\0b", 3), &values[3]));
        assert_null(map_get(m, str_make("a\0c", 3)));
        assert_ptr_equal(map_take(m, STR("one")), &values[1]);
        assert_null(map_get(m, STR("one")));
        assert_int_equal(map_count(m), 2);
        struct str own = map_key(m, str_make("a\0b", 3));
        assert_true(str_eq(own, str_make("a\0b", 3)));
        for (int i = 0; i < 100; i++) { /* it stays where it is when the map grows */
                char more[8];

                snprintf(more, sizeof(more), "%d", i);
                assert_null(map_put(m, str_of(more), &values[0]));
        }
        assert_ptr_equal(map_key(m, str_make("a\0b", 3)).p, own.p);
        assert_ptr_equal(map_take(m, own), &values[3]);
        assert_null(map_get(m, str_make("a\0b", 3)));
        map_free(m);
        map_free(NULL);
}

static void nocase(void **state)
{
        struct map *m = map_new_nocase();

        (void)state;
        map_put(m, STR("RequestMemory"), &values[0]);
        assert_ptr_equal(map_get(m, STR("requestMEMORY")), &values[0]);
        assert_ptr_equal(map_put(m, STR("REQUESTMEMORY"), &values[1]), &values[0]);
        assert_int_equal(map_count(m), 1);
        assert_ptr_equal(map_take(m, STR("requestmemory")), &values[1]);
        map_free(m);
}

/* The map against an array, with few keys, so that deletions in clusters happen all the time. */
static void random_model(void **state)
{
        struct map *m = map_new();
        struct idmap *ids = idmap_new();
        void *model[200] = {0};
        size_t count = 0;

        (void)state;
        srandom(7);
        for (int step = 0; step < 100000; step++) {
                unsigned k = (unsigned)random() % 200;
                uint64_t id = (uint64_t)k << (k % 50);
                char key[24];
                void *want = model[k], *value = (char *)values + 1 + random() % 1000;

                id = id * 256 + k;
                snprintf(key, sizeof(key), "key number %u", k);
                switch (random() % 3) {
                case 0:
                        assert_ptr_equal(map_put(m, str_of(key), value), want);
                        assert_ptr_equal(idmap_put(ids, id, value), want);
                        model[k] = value;
                        count += !want;
                        break;
                case 1:
                        assert_ptr_equal(map_take(m, str_of(key)), want);
                        assert_ptr_equal(idmap_take(ids, id), want);
                        model[k] = NULL;
                        count -= !!want;
                        break;
                default:
                        assert_ptr_equal(map_get(m, str_of(key)), want);
                        assert_ptr_equal(idmap_get(ids, id), want);
                }
                assert_int_equal(map_count(m), count);
                assert_int_equal(idmap_count(ids), count);
        }
        map_free(m);
        idmap_free(ids);
}

static void walks(void **state)
{
        struct map *m = map_new();
        struct idmap *ids = idmap_new();
        uint64_t sum = 0, want = 0, id;
        size_t at = 0, n = 0;
        struct str key;
        void *value;

        (void)state;
        assert_false(map_next(m, &at, &key, &value));
        for (uint64_t i = 1; i <= 1000; i++) {
                char name[16];

                snprintf(name, sizeof(name), "%u", (unsigned)i);
                map_put(m, str_of(name), (void *)(uintptr_t)i);
                idmap_put(ids, i * i, (void *)(uintptr_t)i);
                want += i;
        }
        for (at = 0; map_next(m, &at, &key, &value); n++) {
                uint64_t number;

                assert_int_equal(str_to_u64(key, &number), 0);
                assert_true(number == (uintptr_t)value);
                sum += number;
        }
        assert_int_equal(n, 1000);
        assert_true(sum == want);
        for (at = 0, n = 0; idmap_next(ids, &at, &id, &value); n++)
                assert_true(id == (uintptr_t)value * (uintptr_t)value);
        assert_int_equal(n, 1000);
        for (at = 0, n = 0; map_next(m, &at, NULL, NULL); n++)
                ;
        assert_int_equal(n, 1000);
        map_free(m);
        idmap_free(ids);
        idmap_free(NULL);
}

static void extreme_ids(void **state)
{
        struct idmap *m = idmap_new();

        (void)state;
        assert_null(idmap_put(m, 0, &values[0]));
        assert_null(idmap_put(m, UINT64_MAX, &values[1]));
        assert_ptr_equal(idmap_get(m, 0), &values[0]);
        assert_ptr_equal(idmap_get(m, UINT64_MAX), &values[1]);
        idmap_free(m);
}

static void hashes(void **state)
{
        (void)state;
        assert_true(map_hash("abc", 3) == map_hash("abc", 3));
        assert_true(map_hash("abc", 3) != map_hash("abd", 3));
        assert_true(map_hash("abc\0", 4) != map_hash("abc", 3));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(basics), cmocka_unit_test(nocase),      cmocka_unit_test(random_model),
                cmocka_unit_test(walks),  cmocka_unit_test(extreme_ids), cmocka_unit_test(hashes),
        };

        return cmocka_run_group_tests_name("base/map", tests, NULL, NULL);
}
