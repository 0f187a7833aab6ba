#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "move/mover.h"
#include "move/workers.h"

#define COUNT 100

struct shared {                   /* by the test and its workers */
        atomic_uint times[COUNT]; /* how often each item was done */
        atomic_uint begun[COUNT], now, most_now;
};
struct test {
        struct shared *s;
        int (*does)(struct shared *s, size_t item, struct err *err);
        uint64_t end_at; /* items after which alive() ends all; 0: never */
};

static int work(void *arg, struct worker *me, struct workers_sum *sum, size_t item, struct err *err)
{
        struct test *t = arg;
        unsigned now = atomic_fetch_add(&t->s->now, 1) + 1, most = atomic_load(&t->s->most_now);

        while (now > most && !atomic_compare_exchange_weak(&t->s->most_now, &most, now))
                ;
        worker_beat(me, 5);
        atomic_fetch_add(&t->s->begun[item], 1);
        int r = t->does(t->s, item, err);
        atomic_fetch_add(&sum->bytes, r == 0 ? 10 : 0);
        atomic_fetch_add(&sum->tries, 1);
        atomic_fetch_add(&t->s->times[item], 1);
        atomic_fetch_sub(&t->s->now, 1);
        return r;
}

static int alive(void *arg, uint64_t bytes, uint64_t done)
{
        struct test *t = arg;

        assert_true(bytes <= COUNT * 15);
        return t->end_at && done >= t->end_at ? -ECANCELED : 0;
}

static int run(struct test *t, unsigned most, bool fixed, struct workers_report *ret)
{
        const struct workers_spec spec = {.count = COUNT,
                                          .most = most,
                                          .fixed = fixed,
                                          .silent_ms = 300,
                                          .work = work,
                                          .alive = alive,
                                          .arg = t};

        t->s = mmap(NULL, sizeof(*t->s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(t->s != MAP_FAILED);
        return workers_run(&spec, ret);
}

static void end(struct test *t)
{
        munmap(t->s, sizeof(*t->s));
}

static int nothing(struct shared *s, size_t item, struct err *err)
{
        (void)s, (void)item, (void)err;
        poll(NULL, 0, 1);
        return 0;
}

static void each_item_is_done_once(void **state)
{
        struct test t = {.does = nothing};
        struct workers_report r;

        (void)state;
        assert_int_equal(run(&t, 4, true, &r), 0);
        for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(atomic_load(&t.s->times[i]), 1);
        assert_true(r.done == COUNT && r.failed == 0 && r.bytes == 10 * COUNT && r.tries == COUNT);
        assert_true(!r.again && !r.refused && !r.denied && !*r.first.text);
        assert_true(atomic_load(&t.s->most_now) <= 4 && r.last == 4 && r.tried_count == 0);
        end(&t);
}

static int two_fail(struct shared *s, size_t item, struct err *err)
{
        (void)s;
        return item == 7   ? err_set(err, MOVER_REFUSED, "not there")
               : item == 8 ? err_set(err, MOVER_AGAIN, "not now")
                           : 0;
}

static void failures_are_counted(void **state)
{
        struct test t = {.does = two_fail};
        struct workers_report r;

        (void)state;
        assert_int_equal(run(&t, 1, true, &r), 0);
        assert_true(r.done == COUNT - 2 && r.failed == 2 && r.again && r.refused);
        assert_string_equal(r.first.text, "not there");
        end(&t);
}

/* Item 3 brings its worker down the first time, item 5 always, item 9 makes it hang the first time. */
static int dangerous(struct shared *s, size_t item, struct err *err)
{
        unsigned begun = atomic_load(&s->begun[item]);

        (void)err;
        if (item == 5 || (item == 3 && begun == 1))
                kill(getpid(), SIGKILL);
        if (item == 9 && begun == 1)
                kill(getpid(), SIGSTOP);
        return 0;
}

static void workers_that_end_are_replaced(void **state)
{
        struct test t = {.does = dangerous};
        struct workers_report r;

        (void)state;
        assert_int_equal(run(&t, 3, true, &r), 0);
        for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(atomic_load(&t.s->times[i]), i != 5);
        assert_int_equal(atomic_load(&t.s->begun[5]), WORKERS_LIVES);
        assert_true(r.done == COUNT - 1 && r.failed == 1 && r.again && !r.refused);
        assert_non_null(strstr(r.first.text, "died"));
        end(&t);
}

/* Item 20 is taken by a worker that dies before it says so, in place of which it names item 10, which is
 * done. */
static int dies_between_items(void *arg, struct worker *me, struct workers_sum *sum, size_t item,
                              struct err *err)
{
        struct test *t = arg;

        (void)sum, (void)err;
        if (item == 20 && atomic_fetch_add(&t->s->begun[item], 1) == 0) {
                atomic_store(&me->begins, 10 + 1);
                kill(getpid(), SIGKILL);
        }
        atomic_fetch_add(&t->s->times[item], 1);
        return 0;
}

static void no_item_is_lost_or_done_twice_between_two(void **state)
{
        struct test t = {.s = NULL};
        struct workers_report r;
        const struct workers_spec spec = {.count = COUNT,
                                          .most = 1,
                                          .fixed = true,
                                          .silent_ms = 10000,
                                          .work = dies_between_items,
                                          .alive = alive,
                                          .arg = &t};

        (void)state;
        t.s = mmap(NULL, sizeof(*t.s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(t.s != MAP_FAILED);
        assert_int_equal(workers_run(&spec, &r), 0);
        for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(atomic_load(&t.s->times[i]), 1);
        assert_true(r.done == COUNT && r.failed == 0);
        end(&t);
}

static void all_end_when_nobody_wants_them(void **state)
{
        struct test t = {.does = nothing, .end_at = 10};
        struct workers_report r;

        (void)state;
        assert_int_equal(run(&t, 2, false, &r), -ECANCELED);
        assert_true(r.done >= 10 && r.done <= COUNT);
        end(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_item_is_done_once),
                cmocka_unit_test(failures_are_counted),
                cmocka_unit_test(workers_that_end_are_replaced),
                cmocka_unit_test(no_item_is_lost_or_done_twice_between_two),
                cmocka_unit_test(all_end_when_nobody_wants_them),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
