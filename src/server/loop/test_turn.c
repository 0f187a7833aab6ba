/* What leaves when: a turn on a store in memory, with an I/O thread that only notes what reached it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/loop/turn.h"

struct note {
        struct task task;
        char letter;
};
struct bench {
        struct server server;
        struct loop *io_loop; /* the server's, but in one test */
        struct buf said;      /* letters, in the order in which they reached the I/O thread */
        size_t until;         /* letters */
        bool awaited;         /* something waits for records to be durable */
        uint64_t durable;     /* the last record that the core thread was told is */
};
static struct bench *bench;

static void note_run(struct server *s, struct task *t)
{
        (void)s;
        buf_char(&bench->said, ((struct note *)t)->letter);
        free(t);
        if (bench->said.n >= bench->until)
                loop_stop(bench->io_loop);
}

static struct task *note_new(char letter)
{
        struct note *n = mem_new(struct note);

        n->task.run = note_run;
        n->letter = letter;
        return &n->task;
}

static void say(char letter, enum turn_when when)
{
        turn_send(bench->server.turn, note_new(letter), when);
}

static void receive(void *arg, struct mail *m)
{
        struct task *t = (struct task *)m;

        t->run(arg, t);
}

static void drop(struct mail *m)
{
        task_drop((struct task *)m);
}

/* Runs the loop until so many letters have come. */
static const char *wait_for(size_t letters)
{
        bench->until = letters;
        if (bench->said.n < letters)
                loop_run(bench->io_loop);
        return buf_z(&bench->said);
}

static void look_idle(void *arg)
{
        struct timer **again = arg;

        if (turn_idle(bench->server.turn))
                loop_stop(bench->server.loop);
        else
                timer_start(*again, 1);
}

/* Runs the core's loop until all is durable and has left. */
static void wait_until_idle(void)
{
        struct timer *look = timer_new(bench->server.loop, look_idle, &look);

        timer_start(look, 0);
        loop_run(bench->server.loop);
        timer_free(look);
}

static void record(struct store_batch *b)
{
        store_batch_event(b, STR("x"));
}

static void nothing(struct server *s)
{
        (void)s;
}

static bool is_awaited(struct server *s)
{
        (void)s;
        return bench->awaited;
}

static void count_durable(struct server *s, uint64_t seq, size_t bytes, int64_t took_ns)
{
        (void)s;
        bench->durable = seq;
        if (bench->awaited)
                loop_stop(s->loop);
        (void)bytes;
        (void)took_ns;
}

static const struct turn_hooks hooks = {
        .slept = nothing, .ending = nothing, .durable = count_durable, .awaited = is_awaited};

static int setup(void **state)
{
        struct core_config config = {0};
        struct core_world world = {0};
        struct server *s;

        (void)state;
        bench = mem_new(struct bench);
        s = &bench->server;
        s->loop = loop_new();
        s->core_mail = mailbox_new(s->loop, receive, NULL, s);
        bench->io_loop = s->loop;
        s->io_mail = mailbox_new(s->loop, receive, NULL, s);
        assert_int_equal(store_open("memory:", &s->store, NULL, NULL), 0);
        assert_int_equal(store_term_take(s->store, &s->term, NULL), 0);
        s->core = core_new(&config, &world);
        s->turn = turn_new(s, &hooks);
        turn_begin(s->turn);
        return 0;
}

static int teardown(void **state)
{
        struct server *s = &bench->server;

        (void)state;
        store_close(s->store);
        mailbox_free(s->core_mail, drop);
        turn_free(s->turn);
        mailbox_free(s->io_mail, drop);
        core_free(s->core);
        loop_free(s->loop);
        buf_deinit(&bench->said);
        free(bench);
        return 0;
}

static void test_nothing_to_write(void **state)
{
        struct turn *t = bench->server.turn;

        (void)state;
        say('r', TURN_READ);
        say('d', TURN_DURABLE);
        say('n', TURN_NOW);
        assert_true(turn_idle(t));
        turn_end(t);
        assert_string_equal(wait_for(3), "nrd");
}

/* What follows from a record leaves after it is durable, and what was read after it leaves behind it. */
static void test_durable_before_visible(void **state)
{
        struct turn *t = bench->server.turn;
        const char *said;

        (void)state;
        record(turn_batch(t));
        say('1', TURN_DURABLE);
        turn_end(t);
        turn_begin(t);
        say('2', TURN_READ);
        say('n', TURN_NOW);
        turn_end(t);
        said = wait_for(3); /* where the disk was quick the first had left by then */
        assert_true(strcmp(said, "n12") == 0 || strcmp(said, "1n2") == 0);
        assert_int_equal(atomic_load(&bench->server.durable_seq), 1);
        wait_until_idle();
        turn_begin(t);
        say('3', TURN_READ);
        turn_end(t);
        assert_int_equal(wait_for(4)[3], '3');
}

/* An answer reaches the I/O thread while the core's thread sleeps; what is read then comes behind it. */
static void test_answers_do_not_wait_for_the_core(void **state)
{
        struct turn *t = bench->server.turn;

        (void)state;
        mailbox_free(bench->server.io_mail, drop);
        bench->io_loop = loop_new();
        bench->server.io_mail = mailbox_new(bench->io_loop, receive, NULL, &bench->server);
        record(turn_batch(t));
        say('1', TURN_DURABLE);
        say('2', TURN_DURABLE);
        turn_end(t);
        assert_string_equal(wait_for(2), "12"); /* nobody runs the core's loop */
        assert_int_equal(atomic_load(&bench->server.durable_seq), 1);
        turn_begin(t);
        say('r', TURN_READ);
        turn_end(t);
        assert_string_equal(wait_for(3), "12r");
        wait_until_idle();
        mailbox_free(bench->server.io_mail, drop);
        loop_free(bench->io_loop);
        bench->io_loop = bench->server.loop;
        bench->server.io_mail = mailbox_new(bench->io_loop, receive, NULL, &bench->server);
}

/* An answer to a call that came before anything was done in a turn does not wait for the turn's end. */
static void test_what_is_read_first_leaves_first(void **state)
{
        struct turn *t = bench->server.turn;

        (void)state;
        turn_reply(t, note_new('1'), TURN_READ);
        record(turn_batch(t));
        turn_reply(t, note_new('2'), TURN_READ);
        assert_string_equal(wait_for(1), "1");
        turn_end(t);
        turn_begin(t);
        turn_reply(t, note_new('3'), TURN_READ); /* behind the commit that is under way, or was */
        turn_reply(t, note_new('4'), TURN_READ);
        turn_end(t);
        assert_string_equal(wait_for(4), "1234");
        assert_int_equal(atomic_load(&bench->server.durable_seq), 1);
}

/* The core thread sleeps on after a commit, unless something there waits for it. */
static void test_the_core_wakes_for_what_waits(void **state)
{
        struct turn *t = bench->server.turn;

        (void)state;
        record(turn_batch(t));
        say('1', TURN_DURABLE);
        turn_end(t);
        assert_string_equal(wait_for(1), "1");
        wait_until_idle();
        assert_int_equal(bench->durable, 0);
        turn_begin(t);
        assert_int_equal(bench->durable, 1);
        bench->awaited = true;
        record(turn_batch(t));
        turn_end(t);
        loop_run(bench->server.loop);
        assert_int_equal(bench->durable, 2);
        /* what begins to wait behind a commit is told of that one */
        bench->awaited = false;
        turn_begin(t);
        record(turn_batch(t));
        turn_end(t);
        bench->awaited = true;
        turn_begin(t);
        if (bench->durable == 2) {
                turn_end(t);
                loop_run(bench->server.loop);
        }
        assert_int_equal(bench->durable, 3);
}

static void test_several_turns_keep_their_order(void **state)
{
        struct turn *t = bench->server.turn;

        (void)state;
        for (int c = 'a'; c <= 'z'; c++) {
                turn_begin(t);
                record(turn_batch(t));
                say((char)c, TURN_DURABLE);
                turn_end(t);
        }
        assert_int_equal(turn_commit(t), 27);
        assert_string_equal(wait_for(26), "abcdefghijklmnopqrstuvwxyz");
        assert_int_equal(atomic_load(&bench->server.durable_seq), 26);
        assert_int_equal(turn_durable(t), 26);
}

/* A record that only informs holds nothing back, and is written with the next that does not. */
static void test_informing_waits(void **state)
{
        struct turn *t = bench->server.turn;

        (void)state;
        record(turn_inform(t));
        say('r', TURN_READ);
        turn_end(t);
        assert_string_equal(wait_for(1), "r");
        assert_int_equal(atomic_load(&bench->server.durable_seq), 0);
        turn_begin(t);
        record(turn_batch(t));
        say('d', TURN_DURABLE);
        turn_end(t);
        assert_string_equal(wait_for(2), "rd");
        assert_int_equal(atomic_load(&bench->server.durable_seq), 2);
}

/* What is acknowledged may follow from a record that only informed: both are written before. */
static void test_an_answer_takes_the_informing_along(void **state)
{
        struct turn *t = bench->server.turn;

        (void)state;
        record(turn_inform(t));
        turn_end(t);
        turn_begin(t);
        say('d', TURN_DURABLE);
        turn_end(t);
        assert_string_equal(wait_for(1), "d");
        assert_int_equal(atomic_load(&bench->server.durable_seq), 1);
}

static void look_full(void *arg)
{
        struct timer **again = arg;

        if (turn_full(bench->server.turn))
                loop_stop(bench->server.loop);
        else
                timer_start(*again, 1);
}

/* What cannot be written holds back what follows from it; reading goes on. */
static void test_a_full_disk(void **state)
{
        struct turn *t = bench->server.turn;
        BUF_CLEANUP struct buf big = {0};
        struct timer *look;

        (void)state;
        store_close(bench->server.store);
        assert_int_equal(store_open("memory:2000", &bench->server.store, NULL, NULL), 0);
        assert_int_equal(store_term_take(bench->server.store, &bench->server.term, NULL), 0);
        memset(buf_room(&big, 4000), 'x', 4000);
        big.n = 4000;
        look = timer_new(bench->server.loop, look_full, &look);
        store_batch_event(turn_batch(t), buf_view(&big));
        say('d', TURN_DURABLE);
        turn_end(t);
        timer_start(look, 0);
        loop_run(bench->server.loop);
        timer_free(look);
        assert_true(turn_full(t));
        turn_begin(t);
        record(turn_batch(t));
        say('e', TURN_DURABLE);
        say('r', TURN_READ);
        turn_end(t);
        assert_string_equal(wait_for(1), "r");
        assert_false(turn_idle(t));
        assert_int_equal(atomic_load(&bench->server.durable_seq), 0);
}

int main(void)
{
#define TURN(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                TURN(test_nothing_to_write),
                TURN(test_durable_before_visible),
                TURN(test_answers_do_not_wait_for_the_core),
                TURN(test_what_is_read_first_leaves_first),
                TURN(test_the_core_wakes_for_what_waits),
                TURN(test_several_turns_keep_their_order),
                TURN(test_informing_waits),
                TURN(test_an_answer_takes_the_informing_along),
                TURN(test_a_full_disk),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
