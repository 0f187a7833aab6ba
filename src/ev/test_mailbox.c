#include "ev/mailbox.h"

#include <pthread.h>

#include "ev/test_help.h"

#define THREADS 4
#define EACH    20000

struct letter {
        struct mail mail;
        int from, number;
};
struct world {
        struct loop *loop;
        struct mailbox *box;
        int next[THREADS];
        int got, batches, out_of_order, dropped;
        bool free_in_fn, free_in_idle;
};
static struct world world;

static struct letter *letter(int from, int number)
{
        struct letter *t = mem_new(struct letter);

        t->from = from;
        t->number = number;
        return t;
}

static void received(void *arg, struct mail *m)
{
        struct world *w = arg;
        struct letter *t = (struct letter *)m;

        if (w->next[t->from]++ != t->number)
                w->out_of_order++;
        free(t);
        if (++w->got == THREADS * EACH)
                loop_stop(w->loop);
        if (w->free_in_fn) {
                struct mailbox *box = w->box;
                w->box = NULL;
                mailbox_free(box, (void (*)(struct mail *))free);
        }
}

static void idle(void *arg)
{
        struct world *w = arg;

        w->batches++;
        if (w->free_in_idle) {
                mailbox_free(w->box, NULL);
                w->box = NULL;
        }
}

static void *poster(void *arg)
{
        int from = (int)(intptr_t)arg;

        for (int i = 0; i < EACH; i++)
                mailbox_post(world.box, &letter(from, i)->mail);
        return NULL;
}

static void drop(struct mail *m)
{
        world.dropped++;
        free(m);
}

static int setup(void **state)
{
        (void)state;
        world = (struct world){.loop = loop_new()};
        world.box = mailbox_new(world.loop, received, idle, &world);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        mailbox_free(world.box, drop);
        loop_free(world.loop);
        return 0;
}

static void four_threads(void **state)
{
        pthread_t t[THREADS];

        (void)state;
        for (intptr_t i = 0; i < THREADS; i++)
                pthread_create(&t[i], NULL, poster, (void *)i);
        help_run(world.loop);
        for (int i = 0; i < THREADS; i++)
                pthread_join(t[i], NULL);
        assert_int_equal(world.got, THREADS * EACH);
        assert_int_equal(world.out_of_order, 0);
        assert_true(world.batches > 0 && world.batches <= world.got);
}

static void a_batch_is_one_turn(void **state)
{
        (void)state;
        for (int i = 0; i < 100; i++)
                mailbox_post(world.box, &letter(0, i)->mail);
        help_run_ms(world.loop, 5);
        assert_int_equal(world.got, 100);
        assert_int_equal(world.batches, 1);
        help_run_ms(world.loop, 5);
        assert_int_equal(world.batches, 1);
}

static void the_rest_is_dropped(void **state)
{
        (void)state;
        for (int i = 0; i < 10; i++)
                mailbox_post(world.box, &letter(0, i)->mail);
        mailbox_free(world.box, drop);
        world.box = NULL;
        assert_int_equal(world.dropped, 10);
        assert_int_equal(world.got, 0);
}

static void freed_by_its_receiver(void **state)
{
        (void)state;
        world.free_in_fn = true;
        for (int i = 0; i < 10; i++)
                mailbox_post(world.box, &letter(0, i)->mail);
        help_run_ms(world.loop, 5);
        assert_int_equal(world.got, 1);
        assert_int_equal(world.batches, 0);
        world.box = mailbox_new(world.loop, received, idle, &world);
        world.free_in_fn = false;
        world.free_in_idle = true;
        mailbox_post(world.box, &letter(0, 1)->mail);
        help_run_ms(world.loop, 5);
        assert_int_equal(world.got, 2);
        assert_null(world.box);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(four_threads, setup, teardown),
                cmocka_unit_test_setup_teardown(a_batch_is_one_turn, setup, teardown),
                cmocka_unit_test_setup_teardown(the_rest_is_dropped, setup, teardown),
                cmocka_unit_test_setup_teardown(freed_by_its_receiver, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
