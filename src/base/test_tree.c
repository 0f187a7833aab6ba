#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/tree.h"

#define ITEMS 200

struct item {
        int key, size, least; /* least: of the sizes of this one and all below */
        bool in;
        struct tree_node node;
};
static struct item items[ITEMS];

static struct item *item_of(const struct tree_node *n)
{
        return container_of(n, struct item, node);
}

static bool before(const struct tree_node *a, const struct tree_node *b)
{
        const struct item *x = item_of(a), *y = item_of(b);

        return x->key != y->key ? x->key < y->key : x < y;
}

static void sum(struct tree_node *n)
{
        struct item *i = item_of(n);

        i->least = i->size;
        if (n->left && item_of(n->left)->least < i->least)
                i->least = item_of(n->left)->least;
        if (n->right && item_of(n->right)->least < i->least)
                i->least = item_of(n->right)->least;
}

static unsigned looked;

static bool may(void *arg, const struct tree_node *n)
{
        looked++;
        return item_of(n)->least <= *(int *)arg;
}

static bool is(void *arg, const struct tree_node *n)
{
        return item_of(n)->size <= *(int *)arg;
}

/* By looking at all: the first in order behind `after` whose size is at most `most`. */
static struct item *slow_find(const struct item *after, int most)
{
        struct item *best = NULL;

        for (int i = 0; i < ITEMS; i++) {
                struct item *x = &items[i];

                if (!x->in || x->size > most || (after && !before(&after->node, &x->node)))
                        continue;
                if (!best || before(&x->node, &best->node))
                        best = x;
        }
        return best;
}

static void check_search(struct tree *t)
{
        int most = (int)(random() % 50);
        struct tree_search s = {&most, may, is};
        struct tree_node *at = NULL;
        struct item *want = NULL;

        do {
                at = tree_find(t, at, &s);
                want = slow_find(want, most);
                assert_ptr_equal(at ? item_of(at) : NULL, want);
        } while (at);
}

static void finds_what_looking_at_all_finds(void **state)
{
        struct tree t = {.before = before, .sum = sum};
        size_t count = 0;

        (void)state;
        srandom(7);
        for (int round = 0; round < 3000; round++) {
                struct item *x = &items[random() % ITEMS];

                if (x->in && random() % 2) {
                        tree_take(&t, &x->node);
                        tree_take(&t, &x->node);
                        x->in = false;
                        count--;
                } else {
                        x->key = (int)(random() % 40);
                        x->size = (int)(random() % 60);
                        if (x->in)
                                tree_moved(&t, &x->node);
                        else
                                tree_put(&t, &x->node);
                        count += !x->in;
                        x->in = true;
                }
                assert_int_equal(t.count, count);
                if (round % 10 == 0)
                        check_search(&t);
        }
        size_t seen = 0;
        for (struct tree_node *n = tree_first(&t), *next; n; n = next, seen++) {
                next = tree_next(n);
                assert_true(!next || before(n, next));
        }
        assert_int_equal(seen, count);
}

static void leaves_out_what_cannot_be(void **state)
{
        struct tree t = {.before = before, .sum = sum};
        static struct item many[100000];
        int most = 1;
        struct tree_search s = {&most, may, is};

        (void)state;
        for (int i = 0; i < 100000; i++) {
                many[i] = (struct item){.key = i, .size = i == 70000 ? 1 : 2};
                tree_put(&t, &many[i].node);
        }
        looked = 0;
        assert_ptr_equal(tree_find(&t, NULL, &s), &many[70000].node);
        assert_null(tree_find(&t, &many[70000].node, &s));
        assert_true(looked < 300);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_what_looking_at_all_finds),
                cmocka_unit_test(leaves_out_what_cannot_be),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
