#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "core/core.h"
#include "server/userlog/format.h"

#define AT "2026-01-02 03:04:05 "

static struct userlog_line line(void)
{
        return (struct userlog_line){.request = 7,
                                     .member = 42,
                                     .at_ms = 1767323045678,
                                     .host = "n1",
                                     .queue = "default",
                                     .options = USERLOG_OPTIONS};
}

static void check(enum userlog_number number, const struct userlog_line *l, const char *want)
{
        BUF_CLEANUP struct buf out = {0};

        userlog_format(&out, number, l);
        assert_string_equal(buf_z(&out), want);
}

static void test_submit(void **state)
{
        struct userlog_line l = line();

        (void)state;
        check(USERLOG_SUBMIT, &l, "000 (007.042.000) " AT "Job submitted from host: <n1:0?alias=n1>\n...\n");
        l.notes = "DAG Node: A";
        l.user_notes = "mine";
        check(USERLOG_SUBMIT, &l,
              "000 (007.042.000) " AT
              "Job submitted from host: <n1:0?alias=n1>\n    DAG Node: A\n    mine\n...\n");
        l.request = 123456;
        l.member = 7890;
        l.notes = l.user_notes = NULL;
        check(USERLOG_SUBMIT, &l,
              "000 (123456.7890.000) " AT "Job submitted from host: <n1:0?alias=n1>\n...\n");
}

static void test_options(void **state)
{
        static const struct {
                const char *words;
                unsigned options;
                const char *unknown;
        } rows[] = {
                {"", USERLOG_ISO_DATE, ""},
                {"XML", USERLOG_ISO_DATE | USERLOG_XML, ""},
                {"xml, json", USERLOG_ISO_DATE | USERLOG_JSON, ""},
                {"JSON !json", USERLOG_ISO_DATE, ""},
                {"XML TEXT", USERLOG_ISO_DATE, ""},
                {"UTC,SUB_SECOND", USERLOG_ISO_DATE | USERLOG_UTC | USERLOG_SUB_SECOND, ""},
                {"UTC SUB_SECOND LEGACY", 0, ""},
                {"LEGACY UTC !LEGACY", USERLOG_UTC | USERLOG_ISO_DATE, ""},
                {"!ISO_DATE", 0, ""},
                {"ISO_DATE what ! no", USERLOG_ISO_DATE, "what"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct str unknown = STR_NONE;

                assert_int_equal(userlog_options(str_of(rows[i].words), USERLOG_OPTIONS, &unknown),
                                 rows[i].options);
                assert_true(str_eqz(unknown, rows[i].unknown));
        }
}

static void test_times(void **state)
{
        static const struct {
                unsigned options;
                const char *at;
        } rows[] = {
                {0, "01/02 03:04:05 "},
                {USERLOG_UTC, "01/02 03:04:05Z "},
                {USERLOG_ISO_DATE | USERLOG_SUB_SECOND, "2026-01-02 03:04:05.678 "},
                {USERLOG_ISO_DATE | USERLOG_SUB_SECOND | USERLOG_UTC, "2026-01-02 03:04:05.678Z "},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                BUF_CLEANUP struct buf want = {0};
                struct userlog_line l = line();

                l.options = rows[i].options;
                buf_printf(&want, "011 (007.042.000) %sJob was unsuspended.\n...\n", rows[i].at);
                check(USERLOG_UNSUSPENDED, &l, buf_z(&want));
        }
}

static void test_ads(void **state)
{
        struct userlog_line l = line();

        (void)state;
        l.symbols = symbols_new();
        l.options = USERLOG_JSON | USERLOG_ISO_DATE;
        l.reason = STR("by \"ann\" <a@b>\n");
        l.code = 1;
        check(USERLOG_HELD, &l,
              "{\n  \"MyType\": \"JobHeldEvent\",\n  \"EventTypeNumber\": 12,\n"
              "  \"EventTime\": \"2026-01-02T03:04:05\",\n  \"Cluster\": 7,\n  \"Proc\": 42,\n  \"Subproc\": "
              "0,\n"
              "  \"HoldReason\": \"by \\\"ann\\\" <a@b>\",\n  \"HoldReasonCode\": 1,\n"
              "  \"HoldReasonSubCode\": 0\n}\n");
        l.options = USERLOG_XML | USERLOG_SUB_SECOND | USERLOG_UTC;
        check(USERLOG_RELEASED, &l,
              "<c>\n    <a n=\"MyType\"><s>JobReleaseEvent</s></a>\n"
              "    <a n=\"EventTypeNumber\"><i>13</i></a>\n"
              "    <a n=\"EventTime\"><s>2026-01-02T03:04:05.678Z</s></a>\n"
              "    <a n=\"Cluster\"><i>7</i></a>\n    <a n=\"Proc\"><i>42</i></a>\n"
              "    <a n=\"Subproc\"><i>0</i></a>\n"
              "    <a n=\"Reason\"><s>by \"ann\" &lt;a@b&gt;</s></a>\n</c>\n");
        symbols_free(l.symbols);
}

static void test_execute(void **state)
{
        struct userlog_line l = line();

        (void)state;
        check(USERLOG_EXECUTE, &l,
              "001 (007.042.000) " AT
              "Job executing on host: <n1:0?alias=n1>\n\tSlotName: default@n1\n...\n");
        check(USERLOG_EXECUTABLE_ERROR, &l, "002 (007.042.000) " AT "(1) Job file not executable.\n...\n");
        check(USERLOG_SUSPENDED, &l,
              "010 (007.042.000) " AT
              "Job was suspended.\n\tNumber of processes actually suspended: 1\n...\n");
        check(USERLOG_UNSUSPENDED, &l, "011 (007.042.000) " AT "Job was unsuspended.\n...\n");
}

static void test_terminated(void **state)
{
        struct userlog_line l = line();

        (void)state;
        l.exit_code = 3;
        l.cpu_user_ms = 61999;
        l.cpu_system_ms = 1000;
        l.total_user_ms = 90061000;
        l.total_system_ms = 1999;
        l.bytes_in = 10;
        l.bytes_out = 20;
        check(USERLOG_TERMINATED, &l,
              "005 (007.042.000) " AT "Job terminated.\n"
              "\t(1) Normal termination (return value 3)\n"
              "\t\tUsr 0 00:01:01, Sys 0 00:00:01  -  Run Remote Usage\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n"
              "\t\tUsr 1 01:01:01, Sys 0 00:00:01  -  Total Remote Usage\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage\n"
              "\t20  -  Run Bytes Sent By Job\n"
              "\t10  -  Run Bytes Received By Job\n"
              "\t20  -  Total Bytes Sent By Job\n"
              "\t10  -  Total Bytes Received By Job\n"
              "...\n");
}

static void test_killed_by_a_signal(void **state)
{
        struct userlog_line l = line();

        (void)state;
        l.signaled = true;
        l.exit_code = 9;
        l.cpus = 2;
        l.memory_mib = 128;
        l.disk_kib = 4096;
        l.memory_peak_bytes = (5 << 20) + 1;
        check(USERLOG_TERMINATED, &l,
              "005 (007.042.000) " AT "Job terminated.\n"
              "\t(0) Abnormal termination (signal 9)\n"
              "\t(0) No core file\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Remote Usage\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage\n"
              "\t0  -  Run Bytes Sent By Job\n"
              "\t0  -  Run Bytes Received By Job\n"
              "\t0  -  Total Bytes Sent By Job\n"
              "\t0  -  Total Bytes Received By Job\n"
              "\tPartitionable Resources :    Usage  Request Allocated \n"
              "\t   Cpus                 :                 2         2 \n"
              "\t   Disk (KB)            :              4096      4096 \n"
              "\t   Memory (MB)          :        6      128       128 \n"
              "...\n");
        check(USERLOG_IMAGE_SIZE, &l,
              "006 (007.042.000) " AT "Image size of job updated: 5120\n"
              "\t6  -  MemoryUsage of job (MB)\n\t5120  -  ResidentSetSize of job (KB)\n...\n");
}

static void test_checkpointed(void **state)
{
        struct userlog_line l = line();

        (void)state;
        l.cpu_user_ms = 61999;
        l.cpu_system_ms = 2000;
        l.bytes_out = 5000000000;
        check(USERLOG_CHECKPOINTED, &l,
              "003 (007.042.000) " AT "Job was checkpointed.\n"
              "\t\tUsr 0 00:01:01, Sys 0 00:00:02  -  Run Remote Usage\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n"
              "\t5000000000  -  Run Bytes Sent By Job For Checkpoint\n"
              "...\n");
        l.symbols = symbols_new();
        l.bytes_out = 4;
        l.options = USERLOG_JSON;
        check(USERLOG_CHECKPOINTED, &l,
              "{\n  \"MyType\": \"CheckpointedEvent\",\n  \"EventTypeNumber\": 3,\n"
              "  \"EventTime\": \"2026-01-02T03:04:05\",\n  \"Cluster\": 7,\n  \"Proc\": 42,\n  \"Subproc\": "
              "0,\n"
              "  \"RunRemoteUsage\": \"Usr 0 00:01:01, Sys 0 00:00:02\",\n"
              "  \"RunLocalUsage\": \"Usr 0 00:00:00, Sys 0 00:00:00\",\n  \"SentBytes\": 4.0\n}\n");
        symbols_free(l.symbols);
}

static void test_evicted(void **state)
{
        struct userlog_line l = line();

        (void)state;
        l.reason = STR("vacated\nby the user");
        check(USERLOG_EVICTED, &l,
              "004 (007.042.000) " AT "Job was evicted.\n"
              "\t(0) CPU times\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n"
              "\t0  -  Run Bytes Sent By Job\n"
              "\t0  -  Run Bytes Received By Job\n"
              "\tReason: vacated|by the user\n"
              "...\n");
        l.requeued = true;
        l.exit_code = 1;
        l.reason = STR("again");
        check(USERLOG_EVICTED, &l,
              "004 (007.042.000) " AT "Job was evicted.\n"
              "\t(0) Job terminated and was requeued\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage\n"
              "\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n"
              "\t0  -  Run Bytes Sent By Job\n"
              "\t0  -  Run Bytes Received By Job\n"
              "\t(1) Normal termination (return value 1)\n"
              "\tagain\n"
              "...\n");
}

static void test_held_released_aborted(void **state)
{
        struct userlog_line l = line();

        (void)state;
        l.code = 1;
        check(USERLOG_HELD, &l,
              "012 (007.042.000) " AT "Job was held.\n\tReason unspecified\n\tCode 1 Subcode 0\n...\n");
        check(USERLOG_RELEASED, &l, "013 (007.042.000) " AT "Job was released.\n...\n");
        check(USERLOG_ABORTED, &l, "009 (007.042.000) " AT "Job was aborted.\n...\n");
        l.reason = STR("why\n...\n005 (1.0.0)\x1b[1m");
        l.code = 3;
        l.subcode = -2;
        check(USERLOG_HELD, &l,
              "012 (007.042.000) " AT "Job was held.\n\twhy|...|005 (1.0.0) [1m\n\tCode 3 Subcode -2\n...\n");
        check(USERLOG_RELEASED, &l,
              "013 (007.042.000) " AT "Job was released.\n\twhy|...|005 (1.0.0) [1m\n...\n");
        check(USERLOG_ABORTED, &l,
              "009 (007.042.000) " AT "Job was aborted.\n\twhy|...|005 (1.0.0) [1m\n...\n");
        check(USERLOG_GENERIC, &l, "008 (007.042.000) " AT "why|...|005 (1.0.0) [1m\n...\n");
}

static void test_lost(void **state)
{
        struct userlog_line l = line();

        (void)state;
        l.reason = STR("the lease ended");
        check(USERLOG_DISCONNECTED, &l,
              "022 (007.042.000) " AT "Job disconnected, attempting to reconnect\n    the lease ended\n"
              "    Trying to reconnect to default@n1 <n1:0?alias=n1>\n...\n");
        check(USERLOG_RECONNECT_FAILED, &l,
              "024 (007.042.000) " AT "Job reconnection failed\n    the lease ended\n"
              "    Can not reconnect to default@n1, rescheduling job\n...\n");
}

/* "n n n" */
static void check_numbers(struct userlog_record r, const char *want)
{
        enum userlog_number n[USERLOG_NUMBERS_MAX];
        BUF_CLEANUP struct buf out = {0};
        unsigned count = userlog_numbers(&r, n);

        for (unsigned i = 0; i < count; i++)
                buf_printf(&out, i ? " %d" : "%d", (int)n[i]);
        assert_string_equal(buf_z(&out), want);
}

static void test_numbers(void **state)
{
        struct userlog_record exit = {
                .type = EVENT_EXITED, .next = JOB_COMPLETED, .outcome = CORE_EXITED, .started = true};
        struct userlog_record lost = {.type = EVENT_LOST, .next = JOB_IDLE, .started = true};

        (void)state;
        check_numbers((struct userlog_record){.type = EVENT_SUBMITTED}, "0");
        check_numbers((struct userlog_record){.type = EVENT_MATCHED}, "");
        check_numbers((struct userlog_record){.type = EVENT_ACCEPTED}, "");
        check_numbers((struct userlog_record){.type = EVENT_STARTED}, "1");
        check_numbers((struct userlog_record){.type = EVENT_HELD}, "12");
        check_numbers((struct userlog_record){.type = EVENT_RELEASED}, "13");
        check_numbers((struct userlog_record){.type = EVENT_CHECKPOINTED}, "3");
        check_numbers((struct userlog_record){.type = EVENT_REMARK}, "8");
        check_numbers((struct userlog_record){.type = EVENT_ATTRIBUTES}, "");
        check_numbers((struct userlog_record){.type = EVENT_REMOVED}, "9");
        check_numbers((struct userlog_record){.type = EVENT_VACATING}, "");
        check_numbers((struct userlog_record){.type = EVENT_SUSPENDED}, "10");
        check_numbers((struct userlog_record){.type = EVENT_RESUMED}, "11");
        check_numbers(exit, "5");
        exit.has_memory = true;
        check_numbers(exit, "6 5");
        exit.started = false;
        check_numbers(exit, "1 6 5");
        exit.next = JOB_IDLE;
        check_numbers(exit, "1 6 4");
        exit.next = JOB_HELD;
        check_numbers(exit, "1 6 12");
        exit.outcome = CORE_NOT_STARTED;
        exit.code = CORE_HOLD_NOT_STARTED;
        check_numbers(exit, "2 12");
        exit.started = true; /* an agent may think so for a moment */
        exit.has_memory = false;
        check_numbers(exit, "2 12");
        exit.started = false;
        exit.has_memory = true;
        exit.outcome = CORE_STAGING_FAILED;
        check_numbers(exit, "12");
        exit.outcome = CORE_KILLED;
        exit.started = true;
        check_numbers(exit, "6 4 12");
        exit.next = JOB_REMOVED;
        check_numbers(exit, "6 9");
        check_numbers(lost, "22 24 4");
        lost.next = JOB_HELD;
        check_numbers(lost, "22 24 4 12");
        lost.next = JOB_REMOVED;
        check_numbers(lost, "22 24 9");
        lost.started = false;
        lost.next = JOB_IDLE;
        check_numbers(lost, "");
        lost.type = EVENT_REFUSED;
        check_numbers(lost, "");
        lost.next = JOB_HELD;
        check_numbers(lost, "12");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_options),
                cmocka_unit_test(test_times),
                cmocka_unit_test(test_ads),
                cmocka_unit_test(test_submit),
                cmocka_unit_test(test_execute),
                cmocka_unit_test(test_terminated),
                cmocka_unit_test(test_killed_by_a_signal),
                cmocka_unit_test(test_checkpointed),
                cmocka_unit_test(test_evicted),
                cmocka_unit_test(test_held_released_aborted),
                cmocka_unit_test(test_lost),
                cmocka_unit_test(test_numbers),
        };

        setenv("TZ", "UTC", 1);
        tzset();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
