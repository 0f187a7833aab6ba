#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/condor/events.h"

#define SUBMITTED                                                                                            \
        "000 (0007.000.000) 2026-11-21 09:14:05 Job submitted from host: <127.0.0.1:9618>\n    note\n...\n"
#define ENDED                                                                                                \
        "005 (0007.001.002) 11/21 09:14:06 Job terminated.\n\t(1) Normal termination (return value "         \
        "0)\n...\n"

static void takes_whole_events(void **state)
{
        struct str text = STR(SUBMITTED ENDED "009 (0007.000.000) 2026-11-21 09:1");
        struct event e;

        (void)state;
        assert_int_equal(event_next(&text, &e, NULL), 1);
        assert_true(e.number == EVENT_SUBMIT && e.cluster == 7 && e.proc == 0 && e.subproc == 0);
        assert_true(str_ends(e.text, STR("    note\n")));
        assert_int_equal(event_next(&text, &e, NULL), 1);
        assert_true(e.number == EVENT_TERMINATED && e.proc == 1 && e.subproc == 2);
        assert_int_equal(event_next(&text, &e, NULL), 0);
        assert_true(str_starts(text, STR("009 ")));
}

static void half_an_event_is_left(void **state)
{
        /* Every beginning of two events gives only whole ones, and never an error. */
        struct str whole = STR(SUBMITTED ENDED);
        struct event e;

        (void)state;
        for (size_t n = 0; n <= whole.n; n++) {
                struct str text = str_head(whole, n);
                int events = 0;

                while (event_next(&text, &e, NULL) == 1)
                        events++;
                assert_int_equal(events, (n >= sizeof(SUBMITTED) - 1) + (n == whole.n));
        }
}

static void other_text_is_refused(void **state)
{
        static const char *const wrong[] = {
                "hello\n...\n",
                "000 0007.000.000) x\n...\n",
                "x (1.2.3) y\n...\n",
                "000 (1.2) x\n...\n",
                "000 (-1.2.3) x\n...\n",
                "1000 (1.2.3) x\n...\n",
                "<c>\n<a n=\"x\">\n</c>\n",
                "{\n\"MyType\": 1\n}\n",
        };
        struct err err;
        struct event e;

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                struct str text = str_of(wrong[i]);

                assert_true(event_next(&text, &e, &err) < 0);
        }
        assert_int_equal(event_next(&(struct str){"", 0}, &e, &err), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(takes_whole_events),
                cmocka_unit_test(half_an_event_is_left),
                cmocka_unit_test(other_text_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
