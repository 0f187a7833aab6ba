/* A system that refuses more jobs for now: the size of the next submission, and which submissions it applies
 * to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"
#include "run/batch/throttle.h"
#include "run/call/answer.h"

static const char *const limited_by[] = {"--account=", NULL};
static const struct batch_system system_here = {.name = "here", .limited_by = limited_by};
static char a[] = "#X --mem=1\n#X --account=a\n", b_again[] = "#X --account=b\n",
            a_else[] = "#X --account=a\n#X --mem=2\n";

static void parts(void **state)
{
        (void)state;
        struct batch b = {.dir = (char *)(uintptr_t) "here", .system = &system_here, .array_max = 1000};
        struct submit_user p = {.user = NULL}, other = {.user = (char *)"else"};
        struct submission s = {.submit_user = &p, .head = a, .count = 100};
        char full[1000];
        assert_null(batch_throttle_find(&b, &p, a));
        assert_int_equal(batch_throttle_room(NULL, 1000), 1000);
        assert_int_equal(batch_throttle_size(NULL), UINT32_MAX);
        batch_throttle_open(&s, NULL);
        batch_throttle_taken(&b, &s);
        assert_null(s.throttle);

        memset(full, 'x', sizeof(full));
        batch_throttle_full(&b, &s, str_make(full, sizeof(full)));
        assert_non_null(s.throttle);
        assert_int_equal(strlen(batch_throttle_words(s.throttle)), 199);
        assert_int_equal(batch_throttle_size(s.throttle), 50);
        assert_int_equal(batch_throttle_room(s.throttle, 1000), 0); /* it is open: one at a time */
        assert_false(batch_throttle_waits(s.throttle) || batch_throttled(&b));
        assert_ptr_equal(batch_throttle_find(&b, &p, a_else), s.throttle);
        assert_null(batch_throttle_find(&b, &p, b_again));
        assert_null(batch_throttle_find(&b, &other, a));

        struct throttle *j = s.throttle;
        batch_throttle_close(&s);
        batch_throttle_close(&s);
        assert_int_equal(batch_throttle_room(j, 1000), 50);
        assert_int_equal(batch_throttle_room(j, 7), 7);
        for (unsigned size = 100; size < 1000; size *= 2) { /* taken: the next may be larger */
                batch_throttle_open(&s, j);
                batch_throttle_taken(&b, &s);
                assert_int_equal(batch_throttle_size(j), size);
        }
        batch_throttle_open(&s, j);
        batch_throttle_taken(&b, &s);
        assert_null(batch_throttle_words(j)); /* as if there had been none */
        assert_int_equal(batch_throttle_room(j, 1000), 1000);
        batch_throttle_open(&s, j);
        assert_null(s.throttle);
        batch_throttles_free(&b);
}

static void one_alone_waits(void **state)
{
        (void)state;
        struct batch b = {.dir = (char *)(uintptr_t) "here", .system = &system_here, .array_max = 1000};
        struct submit_user p = {.user = NULL};
        struct submission s = {.submit_user = &p, .head = a, .count = 1},
                          t = {.submit_user = &p, .head = a_else, .count = 1};
        batch_throttle_full(&b, &s, STR("too many"));
        batch_throttle_full(&b, &t, STR("too\tmany"));
        batch_throttle_full(&b, &t, STR(""));
        struct throttle *j = s.throttle;
        assert_ptr_equal(t.throttle, j);
        assert_int_equal(batch_throttle_size(j), 1);
        batch_throttle_taken(&b, &s);
        assert_false(batch_throttle_waits(j));
        assert_non_null(batch_throttle_words(j));
        batch_throttle_close(&t);
        assert_int_equal(batch_throttle_room(j, 1000), 2);
        batch_throttles_free(&b);
}

static void there_are_not_too_many(void **state)
{
        (void)state;
        struct batch b = {.dir = (char *)(uintptr_t) "here", .system = &system_here, .array_max = 10};
        struct submit_user p = {.user = NULL};
        for (int i = 0; i < 200; i++) {
                BUF_CLEANUP struct buf head = {0};

                buf_printf(&head, "#X --account=a%d\n", i);
                struct submission s = {
                        .submit_user = &p, .head = (char *)(uintptr_t)buf_z(&head), .count = 4};
                batch_throttle_full(&b, &s, STR("too many"));
                assert_non_null(s.throttle);
                batch_throttle_close(&s);
        }
        batch_throttles_free(&b);
}

static void words_are_one_line(void **state)
{
        (void)state;
        static const char *const words[][2] = {
                {"sbatch: error: QOSMaxWall\nsbatch: error: Batch job submission failed: Invalid qos",
                 "sbatch: error: QOSMaxWall; Batch job submission failed: Invalid qos"},
                {"sbatch: a greeting\nsbatch: error: no\nsbatch: error:",
                 "sbatch: a greeting; error: no; error:"},
                {"ERROR: on line 3:\n\tMemory >\nERROR:no", "ERROR: on line 3:  Memory > ERROR:no"},
                {": x\n: y", ": x : y"},
                {"a\r\n\nb", "a   b"},
                {"", ""}};
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
                BUF_CLEANUP struct buf out = {0};

                answer_clean(&out, str_of(words[i][0]));
                assert_string_equal(buf_z(&out), words[i][1]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parts),
                cmocka_unit_test(one_alone_waits),
                cmocka_unit_test(there_are_not_too_many),
                cmocka_unit_test(words_are_one_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
