/* A system that takes no more for now: how large the next submission may be, and for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "run/batch/private.h"
#include "run/call/answer.h"

static const char *const limited_by[] = {"--account=", NULL};
static const struct batch_system system_here = {.name = "here", .limited_by = limited_by};
static char a[] = "#X --mem=1\n#X --account=a\n", b_again[] = "#X --account=b\n",
            a_else[] = "#X --account=a\n#X --mem=2\n";

static void parts(void **state)
{
        (void)state;
        struct batch b = {.dir = (char *)(uintptr_t) "here", .system = &system_here, .array_max = 1000};
        struct party p = {.user = NULL}, other = {.user = (char *)"else"};
        struct submission s = {.party = &p, .head = a, .count = 100};
        char full[1000];
        assert_null(batch_jam(&b, &p, a));
        assert_int_equal(batch_jam_room(NULL, 1000), 1000);
        assert_int_equal(batch_jam_size(NULL), UINT32_MAX);
        batch_jam_open(&s, NULL);
        batch_jam_taken(&b, &s);
        assert_null(s.jam);

        memset(full, 'x', sizeof(full));
        batch_jam_full(&b, &s, str_make(full, sizeof(full)));
        assert_non_null(s.jam);
        assert_int_equal(strlen(batch_jam_words(s.jam)), 199);
        assert_int_equal(batch_jam_size(s.jam), 50);
        assert_int_equal(batch_jam_room(s.jam, 1000), 0); /* it is open: one at a time */
        assert_false(batch_jam_waits(s.jam) || batch_jammed(&b));
        assert_ptr_equal(batch_jam(&b, &p, a_else), s.jam);
        assert_null(batch_jam(&b, &p, b_again));
        assert_null(batch_jam(&b, &other, a));

        struct jam *j = s.jam;
        batch_jam_close(&s);
        batch_jam_close(&s);
        assert_int_equal(batch_jam_room(j, 1000), 50);
        assert_int_equal(batch_jam_room(j, 7), 7);
        for (unsigned size = 100; size < 1000; size *= 2) { /* taken: the next may be larger */
                batch_jam_open(&s, j);
                batch_jam_taken(&b, &s);
                assert_int_equal(batch_jam_size(j), size);
        }
        batch_jam_open(&s, j);
        batch_jam_taken(&b, &s);
        assert_null(batch_jam_words(j)); /* as if there had been none */
        assert_int_equal(batch_jam_room(j, 1000), 1000);
        batch_jam_open(&s, j);
        assert_null(s.jam);
        batch_jams_free(&b);
}

static void one_alone_waits(void **state)
{
        (void)state;
        struct batch b = {.dir = (char *)(uintptr_t) "here", .system = &system_here, .array_max = 1000};
        struct party p = {.user = NULL};
        struct submission s = {.party = &p, .head = a, .count = 1},
                          t = {.party = &p, .head = a_else, .count = 1};
        batch_jam_full(&b, &s, STR("too many"));
        batch_jam_full(&b, &t, STR("too\tmany"));
        batch_jam_full(&b, &t, STR(""));
        struct jam *j = s.jam;
        assert_ptr_equal(t.jam, j);
        assert_int_equal(batch_jam_size(j), 1);
        batch_jam_taken(&b, &s);
        assert_false(batch_jam_waits(j));
        assert_non_null(batch_jam_words(j));
        batch_jam_close(&t);
        assert_int_equal(batch_jam_room(j, 1000), 2);
        batch_jams_free(&b);
}

static void there_are_not_too_many(void **state)
{
        (void)state;
        struct batch b = {.dir = (char *)(uintptr_t) "here", .system = &system_here, .array_max = 10};
        struct party p = {.user = NULL};
        for (int i = 0; i < 200; i++) {
                BUF_CLEANUP struct buf head = {0};
                buf_printf(&head, "#X --account=a%d\n", i);
                struct submission s = {.party = &p, .head = (char *)(uintptr_t)buf_z(&head), .count = 4};
                batch_jam_full(&b, &s, STR("too many"));
                assert_non_null(s.jam);
                batch_jam_close(&s);
        }
        batch_jams_free(&b);
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
