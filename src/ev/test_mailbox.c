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
        int first;  /* sender of the first */
        int behind; /* most messages with priority that waited at once */
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
        int batches;

        (void)state;
        for (int i = 0; i < 100; i++)
                mailbox_post(world.box, &letter(0, i)->mail);
        help_run_ms(world.loop, 5);
        assert_int_equal(world.got, 100);
        batches = world.batches;
        assert_in_range(batches, 1, 100 / 16); /* one, unless the machine stands still for 4 ms */
        help_run_ms(world.loop, 5);
        assert_int_equal(world.batches, batches);
}

static void the_rest_is_dropped(void **state)
{
        (void)state;
        for (int i = 0; i < 10; i++)
                mailbox_post(world.box, &letter(0, i)->mail);
        mailbox_post_priority(world.box, &letter(1, 0)->mail);
        mailbox_free(world.box, drop);
        world.box = NULL;
        assert_int_equal(world.dropped, 11);
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

/* Messages that take a millisecond, which is for a deadline to be reached: the slower the machine, the
 * sooner. */
static void slowly(void *arg, struct mail *m)
{
        int64_t until_ns = clock_mono_ns() + 1000000;

        while (clock_mono_ns() < until_ns)
                ;
        if (world.got == 0)
                world.first = ((struct letter *)m)->from;
        received(arg, m);
}

static void priority_is_first_and_leaves_a_share(void **state)
{
        (void)state;
        mailbox_free(world.box, drop);
        world.box = mailbox_new(world.loop, slowly, idle, &world);
        for (int i = 0; i < 100; i++) /* from 0 without priority, from 1 with it: each in order */
                mailbox_post(world.box, &letter(0, i)->mail);
        mailbox_post_priority(world.box, &letter(1, 0)->mail);
        mailbox_post_priority(world.box, &letter(1, 1)->mail);
        help_run_ms(world.loop, 1);
        assert_int_equal(world.out_of_order, 0);
        assert_int_equal(world.got, 102);
        assert_int_equal(world.next[1], 2);
        assert_int_equal(world.first, 1);
        assert_in_range(world.batches, 3,
                        98); /* one with priority, which is cut short, and others of some 4 ms */
}

/* Each message without priority posts one that has it; these come between, whatever else waits. */
static void answer_with_priority(void *arg, struct mail *m)
{
        struct world *w = arg;
        struct letter *t = (struct letter *)m;

        if (t->from == 0) {
                w->behind = t->number - w->next[1] > w->behind ? t->number - w->next[1] : w->behind;
                mailbox_post_priority(w->box, &letter(1, t->number)->mail);
        }
        slowly(arg, m);
}

static void priority_waits_for_a_share_only(void **state)
{
        (void)state;
        mailbox_free(world.box, drop);
        world.box = mailbox_new(world.loop, answer_with_priority, idle, &world);
        for (int i = 0; i < 100; i++)
                mailbox_post(world.box, &letter(0, i)->mail);
        help_run_ms(world.loop, 1);
        help_run_ms(world.loop, 1); /* what the last messages have posted */
        assert_int_equal(world.out_of_order, 0);
        assert_int_equal(world.got, 200);
        assert_true(world.behind <= 30);
}

/* The work of a long call: each piece posts the next. */
static void post_again(void *arg, struct mail *m)
{
        struct world *w = arg;

        w->got++;
        mailbox_post_priority(w->box, m);
}

static void posting_to_oneself_keeps_no_timer_waiting(void **state)
{
        (void)state;
        mailbox_free(world.box, drop);
        world.box = mailbox_new(world.loop, post_again, idle, &world);
        mailbox_post_priority(world.box, &letter(0, 0)->mail);
        help_run_ms(world.loop, 5); /* returns by a timer */
        assert_true(world.got > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(four_threads, setup, teardown),
                cmocka_unit_test_setup_teardown(a_batch_is_one_turn, setup, teardown),
                cmocka_unit_test_setup_teardown(the_rest_is_dropped, setup, teardown),
                cmocka_unit_test_setup_teardown(freed_by_its_receiver, setup, teardown),
                cmocka_unit_test_setup_teardown(priority_is_first_and_leaves_a_share, setup, teardown),
                cmocka_unit_test_setup_teardown(priority_waits_for_a_share_only, setup, teardown),
                cmocka_unit_test_setup_teardown(posting_to_oneself_keeps_no_timer_waiting, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
