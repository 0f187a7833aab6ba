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
        assert_true(str_eq(e.text, STR(SUBMITTED)));
        assert_int_equal(event_next(&text, &e, NULL), 1);
        assert_true(e.number == EVENT_TERMINATED && e.proc == 1 && e.subproc == 2);
        assert_int_equal(event_next(&text, &e, NULL), 0);
        assert_true(str_starts(text, STR("009 ")));
}

#define XML                                                                                                  \
        "<c>\n    <a n=\"EventTypeNumber\"><i>1</i></a>\n    <a n=\"Cluster\"><i>7</i></a>\n"                \
        "    <a n=\"Proc\"><i>3</i></a>\n    <a n=\"Toe\"><c>\n        <a n=\"Who\"><s>&lt;/c&gt;</s></a>\n" \
        "    </c></a>\n    <a n=\"ExecuteHost\"><s>&lt;n1:0?alias=n1&gt;</s></a>\n</c>\n"
#define JSON                                                                                                 \
        "{\n  \"MyType\": \"JobAbortedEvent\",\n  \"EventTypeNumber\": 9,\n  \"Cluster\": 7,\n"              \
        "  \"Reason\": \"} \\\" {\",\n  \"Toe\": {\"a\": [1]},\n  \"Proc\": 4\n}\n"

static void takes_xml_and_json(void **state)
{
        struct str text = STR("<?xml version=\"1.0\"?>\n<classads>\n" XML JSON XML "</classads>\n");
        struct event e;

        (void)state;
        assert_int_equal(event_next(&text, &e, NULL), 1);
        assert_true(e.number == EVENT_EXECUTE && e.cluster == 7 && e.proc == 3 && e.subproc == 0);
        assert_string_equal(e.host, "<n1:0?alias=n1>");
        assert_true(str_starts(e.text, STR("<c>\n")) && str_ends(e.text, STR("\n</c>")));
        assert_int_equal(event_next(&text, &e, NULL), 1);
        assert_true(e.number == EVENT_ABORTED && e.cluster == 7 && e.proc == 4);
        assert_string_equal(e.host, "");
        assert_int_equal(event_next(&text, &e, NULL), 1);
        assert_int_equal(event_next(&text, &e, NULL), 0);
}

static void takes_all_times(void **state)
{
        static const char *const heads[] = {
                "001 (7.0.0) 01/31 12:00:00 ",
                "001 (7.0.0) 2026-01-31 12:00:00 ",
                "001 (7.0.0) 2026-01-31 12:00:00.123 ",
                "001 (7.0.0) 2026-01-31 12:00:00.123Z ",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
                BUF_CLEANUP struct buf b = {0};
                struct event e;

                buf_printf(&b, "%sJob executing on host: <n1:0>\n...\n", heads[i]);
                assert_int_equal(event_next(&(struct str){b.p, b.n}, &e, NULL), 1);
                assert_int_equal(e.number, EVENT_EXECUTE);
                assert_string_equal(e.host, "<n1:0>");
        }
}

static void half_an_event_is_left(void **state)
{
        /* Every beginning of two events gives only whole ones, and never an error. */
        static const struct {
                const char *whole;
                size_t first;
        } rows[] = {{SUBMITTED ENDED, sizeof(SUBMITTED) - 1},
                    {XML XML, sizeof(XML) - 2}, /* its last end of line is not waited for */
                    {JSON JSON, sizeof(JSON) - 2}};
        struct event e;

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                for (size_t n = 0, all = strlen(rows[i].whole); n <= all; n++) {
                        struct str text = str_head(str_of(rows[i].whole), n);
                        int events = 0;

                        while (event_next(&text, &e, NULL) == 1)
                                events++;
                        assert_int_equal(events, (n >= rows[i].first) + (n >= all - (i > 0)));
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
                "<c><a n=\"EventTypeNumber\"><i>1</i></a></c>",
                "{\n\"MyType\": 1\n}\n",
                "{\"EventTypeNumber\": 1, \"Cluster\": -1, \"Proc\": 0}",
                "{\"EventTypeNumber\": \"1\", \"Cluster\": 1, \"Proc\": 0}",
                "{]",
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
                cmocka_unit_test(takes_whole_events),    cmocka_unit_test(takes_xml_and_json),
                cmocka_unit_test(takes_all_times),       cmocka_unit_test(half_an_event_is_left),
                cmocka_unit_test(other_text_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
