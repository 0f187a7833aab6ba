/* Recorded output of Task Spooler 1.0.1 is read, and its commands are built. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "run/batch/batch.h"
#include "run/systems/recorded.h"

extern const struct batch_system batch_tsp;

#define HEADER "ID   State      Output               E-Level  Times(r/u/s)   Command [run=3/4]\n"
static const char list[] =
        HEADER "2    running    stdout                                       [drover-1a-7]sh -c exec \"$0\" "
               ">\"$1\" 2>&1 /d/s.sh\n"
               "3    queued     stdout                                       [drover-1a-8]sh -c [x]\n"
               "5    allocating (file)                                       sleep 3\n"
               "0    finished   stdout               -1       0.02/0.00/0.00 [a]sleep 100\n"
               "1    skipped    (no output)                                  true\n";

static void the_list_is_read(void **state)
{
        (void)state;
        assert_true(batch_tsp.is_answer(str_of(list)));
        assert_false(batch_tsp.is_answer(STR("")));
        assert_read(batch_tsp.status_read, list,
                    "2 drover-1a-7 1 ()\n3 drover-1a-8 0 ()\n5  0 ()\n0 a 2 ()\n1  2 ()\n");
        assert_read(batch_tsp.status_read, HEADER, "");
}

static void its_number_is_in_the_list(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf native = {0};
        assert_true(batch_tsp.submitted(STR("17   queued     stdout    [drover-1a-9]sh -c x\n"), &native));
        assert_string_equal(buf_z(&native), "17");
        buf_reset(&native);
        assert_false(batch_tsp.submitted(STR(""), &native));
        assert_false(batch_tsp.submitted(STR("Cannot connect\n"), &native));
        assert_int_equal(native.n, 0);
}

static void a_submit_has_its_words(void **state)
{
        (void)state;
        struct batch_settings none = {NULL, 0};
        struct batch_call c = {.settings = &none};
        BUF_CLEANUP struct buf head = {0};
        struct err err = {""};
        assert_int_equal(batch_tsp.resources(&none, &(struct run_spec){.cpus_milli = 2500}, &head, &err), 0);
        batch_tsp.submit(
                &c, &(struct batch_sending){
                            .name = "d1", .script = "/s", .head = buf_z(&head), .count = 1, .log = "/l"});
        assert_int_equal(c.argv.n, 8);
        static const char *const words[] = {"drover", "d1", "/s", "/l.0.log", "3"};
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
                assert_string_equal(c.argv.v[3 + i], words[i]);
        batch_call_deinit(&c);
        assert_int_equal(batch_tsp.resources(&none, &(struct run_spec){.gpus = 1}, &head, &err), -EINVAL);
}

static void slots_are_processors(void **state)
{
        (void)state;
        struct run_capacity c = {0};
        batch_tsp.capacity_read(
                NULL, STR(HEADER "2    running    stdout  [drover-1a-7]sh\nMemTotal:       16000 kB\n"), &c);
        assert_int_equal(c.cpus_milli, 4000);
        assert_int_equal(c.idle_cpus_milli, 1000);
        assert_int_equal(c.memory_bytes, 16000 << 10);
        c = (struct run_capacity){0};
        batch_tsp.capacity_read(NULL, STR("what?"), &c);
        assert_int_equal(c.cpus_milli, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_list_is_read),
                cmocka_unit_test(its_number_is_in_the_list),
                cmocka_unit_test(a_submit_has_its_words),
                cmocka_unit_test(slots_are_processors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
