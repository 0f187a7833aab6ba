/* Answers of A-REX 6.17 are read, and its requests are made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "run/batch/batch.h"
#include "run/systems/recorded.h"

struct answer {
        struct buf out, errors;
};

static void on_row(void *arg, const struct json_skim_rows *rows, const struct str *values)
{
        struct answer *a = arg;

        batch_arc.service->take(NULL, rows, values, &a->out, &a->errors);
}

/* Adds the lines that come of an answer. */
static void answered(struct answer *a, const char *json)
{
        struct json_skim skim;

        json_skim_init(&skim, batch_arc.service->rows, on_row, a);
        assert_int_equal(json_skim_take(&skim, str_of(json)), 0);
        assert_true(json_skim_done(&skim));
        json_skim_deinit(&skim);
}

static void answer_deinit(struct answer *a)
{
        buf_deinit(&a->out);
        buf_deinit(&a->errors);
}

static void states_and_names_come_together(void **state)
{
        struct answer a = {{0}};

        (void)state;
        answered(&a, "{\"job\":[{\"id\":\"aB1\",\"state\":\"RUNNING\"},{\"id\":\"aB2\",\"state\":\"FAILED\"},"
                     "{\"id\":\"aB3\",\"state\":\"PREPARING\"},{\"id\":\"../x\",\"state\":\"FAILED\"}]}");
        answered(&a, "{\"job\":[{\"status-code\":\"200\",\"reason\":\"OK\",\"id\":\"aB1\",\"info_document\":{"
                     "\"ComputingActivity\":{\"Name\":\"drover-1-2\",\"State\":[\"arcrest:ACCEPTED\"]}}},"
                     "{\"status-code\":\"404\",\"reason\":\"Job not "
                     "found\",\"id\":\"aB2\",\"info_document\":\"\"}]}");
        assert_read(batch_arc.status_read, buf_z(&a.out),
                    "aB1 drover-1-2 1 ()\naB2  7 ()\naB3  0 (PREPARING)\n");
        answer_deinit(&a);
}

static void one_job_has_no_list(void **state)
{
        struct answer a = {{0}};

        (void)state;
        answered(&a, "{\"job\":{\"id\":\"aB1\",\"state\":\"FINISHED\"}}");
        answered(&a,
                 "{\"job\":{\"status-code\":\"200\",\"id\":\"aB1\",\"info_document\":{\"ComputingActivity\":{"
                 "\"Name\":\"drover-1-2\"}}}}");
        assert_read(batch_arc.status_read, buf_z(&a.out), "aB1 drover-1-2 2 ()\n");
        answer_deinit(&a);
}

static void hostile_words_are_no_lines(void **state)
{
        struct answer a = {{0}};

        (void)state;
        answered(&a, "{\"job\":[{\"id\":\"aB1\",\"state\":\"x|y\\nz\"},{\"id\":\"a "
                     "b\",\"state\":\"FAILED\"},{\"id\":\"a\\nb\","
                     "\"state\":\"FAILED\"},{\"state\":\"FAILED\"}]}");
        assert_read(batch_arc.status_read, buf_z(&a.out), "aB1  0 (x?y?z)\n");
        assert_read(batch_arc.status_read, "\n|\n||||||\nnothing", "");
        assert_read(batch_arc.status_read, "aB1|FAILED|x", "aB1 x 7 ()\n"); /* its last line has no end */
        answer_deinit(&a);
}

/* An answer may name millions of jobs: no more are kept than names were asked for. */
static void more_names_than_were_asked_for(void **state)
{
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        for (unsigned i = 0; i < 5000; i++)
                buf_printf(&out, "j%u||name%u|\n", i, i);
        buf_addz(&out, "j7|RUNNING||\nj4999|RUNNING||\n");
        assert_read(batch_arc.status_read, buf_z(&out), "j7 name7 1 ()\nj4999  1 ()\n");
}

static void a_submission_has_an_id_or_a_reason(void **state)
{
        struct answer a = {{0}}, no = {{0}};
        BUF_CLEANUP struct buf native = {0};

        (void)state;
        answered(&a, "{\"job\":{\"status-code\":\"201\",\"reason\":\"Created\",\"id\":\"foFLDm\",\"state\":"
                     "\"ACCEPTING\"}}");
        assert_true(batch_arc.submitted(buf_view(&a.out), &native));
        assert_string_equal(buf_z(&native), "foFLDm");
        assert_int_equal(a.errors.n, 0);
        answered(&no, "{\"job\":{\"status-code\":\"500\",\"reason\":\"emies:adl parsing error\"}}");
        assert_false(batch_arc.submitted(buf_view(&no.out), &native));
        assert_string_equal(buf_z(&no.errors), "500: emies:adl parsing error");
        assert_true(batch_arc.service->fault(buf_view(&no.errors)));
        assert_true(batch_arc.refused(1, buf_view(&no.errors)));
        assert_false(batch_arc.refused(1, STR("A-REX answers with HTTP status 403")));
        assert_true(batch_arc.full(STR("500: No more jobs allowed")));
        answer_deinit(&a);
        answer_deinit(&no);
}

static void a_job_is_described(void **state)
{
        static const struct run_word setting[] = {{"queue", "long&x"}, {"environments", "ENV/PROXY A"}};
        const struct batch_settings settings = {setting, 2};
        struct batch_call c = {.settings = &settings};
        BUF_CLEANUP struct buf head = {0};
        struct err err = {""};

        (void)state;
        assert_int_equal(
                batch_arc.resources(
                        &settings,
                        &(struct run_spec){.cpus_milli = 1500, .memory_bytes = 3000000, .walltime_ms = 59500},
                        &head, &err),
                0);
        batch_arc.submit(&c, &(struct batch_sending){.name = "drover-1-2", .head = buf_z(&head), .count = 1});
        assert_string_equal(c.method, "POST");
        assert_true(c.once);
        assert_string_equal(c.paths.v[0], "/arex/rest/1.0/jobs?action=new");
        assert_non_null(strstr(
                buf_z(&c.input),
                "<Resources><QueueName>long&amp;x</QueueName><RuntimeEnvironment><Name>ENV/PROXY</Name>"
                "</RuntimeEnvironment><RuntimeEnvironment><Name>A</Name></RuntimeEnvironment>"
                "<SlotRequirement><NumberOfSlots>2</NumberOfSlots><SlotsPerHost>2</SlotsPerHost>"
                "</SlotRequirement><IndividualPhysicalMemory>2097152</IndividualPhysicalMemory>"
                "<WallTime>180</WallTime></Resources>"));
        assert_non_null(strstr(buf_z(&c.input), "<Name>drover-1-2</Name>"));
        batch_call_deinit(&c);
        assert_int_equal(batch_arc.resources(&settings, &(struct run_spec){.gpus = 1}, &head, &err), -EINVAL);
}

static void names_are_asked_of_what_is_unknown(void **state)
{
        struct map *known = map_new();
        BUF_CLEANUP struct buf body = {0};

        (void)state;
        map_put(known, STR("aB1"), known);
        assert_true(batch_arc.unnamed(known, STR("aB1|RUNNING||\naB2|FAILED||\n"), &body));
        assert_string_equal(buf_z(&body), "{\"job\":[{\"id\":\"aB2\"}]}");
        assert_false(batch_arc.unnamed(known, STR("aB1|RUNNING||\n"), &body));
        map_free(known);
}

static void files_have_paths(void **state)
{
        const struct batch_settings none = {NULL, 0};
        BUF_CLEANUP struct buf path = {0};

        (void)state;
        batch_arc.file_path(&none, STR("aB1"), STR("jobs/1 ?#%/.x"), &path);
        assert_string_equal(buf_z(&path), "/arex/rest/1.0/jobs/aB1/session/jobs/1%20%3F%23%25/.x");
}

static void a_failure_has_its_kind(void **state)
{
        static const struct {
                const char *text;
                enum batch_phase phase;
        } of[] = {{"Job is canceled by external request\n", BATCH_CANCELLED},
                  {"Job exceeded its walltime", BATCH_TIMEOUT},
                  {"job killed: memory", BATCH_MEMORY},
                  {"LRMS error", BATCH_UNFIT}};

        (void)state;
        for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
                enum batch_phase phase = BATCH_UNFIT;

                assert_true(batch_arc.explained(str_of(of[i].text), &phase).n);
                assert_int_equal(phase, of[i].phase);
        }
}

static void machines_are_counted(void **state)
{
        struct run_capacity c = {0};
        struct answer a = {{0}};

        (void)state;
        answered(&a,
                 "{\"Domains\":{\"AdminDomain\":{\"Services\":{\"ComputingService\":{\"ComputingManager\":{"
                 "\"TotalSlots\":\"40\",\"LogicalCPUDistribution\":\"8:3 16:1\",\"ExecutionEnvironments\":{"
                 "\"ExecutionEnvironment\":{\"MainMemorySize\":\"1024\"}}}}}}}}");
        batch_arc.capacity_read(NULL, buf_view(&a.out), &c);
        assert_int_equal(c.cpus_milli, 40000);
        assert_int_equal(c.node_cpus_milli, 16000);
        assert_int_equal(c.memory_bytes, 4ull << 30);
        c = (struct run_capacity){0};
        batch_arc.capacity_read(NULL, STR("=|2||\n"), &c);
        assert_int_equal(c.idle_cpus_milli, 2000);
        assert_int_equal(c.nodes, 1);
        c = (struct run_capacity){0};
        batch_arc.capacity_read(NULL, STR("=|99999999999999999999|x:y 1:99999999999|-1\n"), &c);
        batch_arc.capacity_read(NULL, STR("aB1|RUNNING||\n"), &c);
        assert_int_equal(c.cpus_milli, 0);
        answer_deinit(&a);
}

static int check(const char *a, const char *x, const char *b, const char *y)
{
        const struct run_word words[] = {{a, x}, {b, y}, {"ca_file", "/ca"}};
        struct err err = {""};

        return batch_arc.check(&(struct batch_settings){words, 3}, &err);
}

static void settings_are_checked(void **state)
{
        (void)state;
        assert_int_equal(check("rest", "https://ce:443", "certificate_file", "/c"), 0);
        assert_int_equal(check("rest", "https://ce:443", "token_file", "/t"), 0);
        assert_int_equal(check("rest", "https://ce:443", "queue", "x"), -EINVAL);
        assert_int_equal(check("rest", "https://ce:443/arex", "token_file", "/t"), -EINVAL);
        assert_int_equal(check("queue", "x", "token_file", "/t"), -EINVAL);
        assert_int_equal(check("rest", "http://ce:80", "path", "arex"), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(states_and_names_come_together),
                cmocka_unit_test(one_job_has_no_list),
                cmocka_unit_test(hostile_words_are_no_lines),
                cmocka_unit_test(more_names_than_were_asked_for),
                cmocka_unit_test(a_submission_has_an_id_or_a_reason),
                cmocka_unit_test(a_job_is_described),
                cmocka_unit_test(names_are_asked_of_what_is_unknown),
                cmocka_unit_test(files_have_paths),
                cmocka_unit_test(a_failure_has_its_kind),
                cmocka_unit_test(machines_are_counted),
                cmocka_unit_test(settings_are_checked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
