#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/heap.h"

struct item {
        long key;
        struct heap_node node;
};

static bool before(const struct heap_node *a, const struct heap_node *b)
{
        return container_of(a, struct item, node)->key < container_of(b, struct item, node)->key;
}

static void sorts(void **state)
{
        struct heap h = {.before = before};
        struct item items[300] = {0};
        long last = -1;

        (void)state;
        assert_null(heap_first(&h));
        srandom(3);
        for (size_t i = 0; i < 300; i++) {
                items[i].key = random() % 100;
                heap_put(&h, &items[i].node);
        }
        for (size_t i = 0; i < 300; i++) {
                struct heap_node *first = heap_first(&h);
                long key = container_of(first, struct item, node)->key;

                assert_true(key >= last);
                last = key;
                heap_take(&h, first);
                assert_int_equal(first->place, 0);
        }
        assert_null(heap_first(&h));
        heap_deinit(&h);
}

/* After any step the first is the smallest of those that are in. */
static void random_steps(void **state)
{
        struct heap h = {.before = before};
        struct item items[60] = {0};

        (void)state;
        srandom(5);
        for (int step = 0; step < 20000; step++) {
                struct item *it = &items[random() % 60];
                struct heap_node *first;
                const struct item *least = NULL;
                size_t in = 0;

                if (!it->node.place) {
                        it->key = random() % 1000;
                        heap_put(&h, &it->node);
                } else if (random() % 2) {
                        heap_take(&h, &it->node);
                } else {
                        it->key = random() % 1000;
                        heap_moved(&h, &it->node);
                }
                for (size_t i = 0; i < 60; i++)
                        if (items[i].node.place) {
                                in++;
                                if (!least || items[i].key < least->key)
                                        least = &items[i];
                        }
                first = heap_first(&h);
                assert_int_equal(h.count, in);
                assert_int_equal(first == NULL, least == NULL);
                if (first)
                        assert_int_equal(container_of(first, struct item, node)->key, least->key);
        }
        heap_deinit(&h);
}

static void take_twice(void **state)
{
        struct heap h = {.before = before};
        struct item a = {.key = 1};

        (void)state;
        heap_take(&h, &a.node);
        heap_put(&h, &a.node);
        heap_take(&h, &a.node);
        heap_take(&h, &a.node);
        assert_int_equal(h.count, 0);
        heap_deinit(&h);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sorts),
                cmocka_unit_test(random_steps),
                cmocka_unit_test(take_twice),
        };

        return cmocka_run_group_tests_name("base/heap", tests, NULL, NULL);
}
