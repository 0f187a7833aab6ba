#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/generate.h"
#include "sim/trace_outages.h"
#include "sim/trace_swf.h"
#include "sim/trace_workflow.h"

static const struct sim_swf_options swf = {.cluster = 3};

static void a_log_is_read(void **state)
{
        struct sim_workload w = {0};
        struct sim_swf_header head;
        struct err err;
        const struct str text = STR("; MaxProcs: 240\n;\n"
                                    "1 100 5 60 4 -1 512 4 3600 1024 1 7 1 2 -1 1 -1 -1\n"
                                    "\n"
                                    "2 130 -1 -1 -1 -1 -1 8 60 -1 5 7 1 2 -1 1 -1 -1 {a} more fields\n"
                                    "3 160 0 0 -1 -1 -1 2 -1 -1 1 9 1 2 -1 1 -1 -1 q_1d\n");

        (void)state;
        assert_int_equal(sim_swf_read(&w, "x.swf", text, &swf, &head, &err), 0);
        assert_int_equal(head.procs, 240);
        assert_int_equal(head.jobs, 2);
        assert_int_equal(head.skipped, 1);
        assert_int_equal(head.widest, 4);
        assert_int_equal(w.jobs[0].submit_ms, 0);
        assert_int_equal(w.jobs[0].run_ms, 60000);
        assert_int_equal(w.jobs[0].asked_s, 3600);
        assert_int_equal(w.jobs[0].memory_mib, 4); /* asked wins over used; for each processor */
        assert_int_equal(w.jobs[0].home, 3);
        assert_int_equal(w.jobs[1].submit_ms, 60000);
        assert_int_equal(w.jobs[1].run_ms, 1); /* something must have run */
        assert_int_equal(w.jobs[1].cpus, 2);   /* those asked for, where those given are not known */
        assert_int_not_equal(w.jobs[0].user, w.jobs[1].user);
        sim_workload_deinit(&w);
}

static void a_bad_log_is_told_with_its_line(void **state)
{
        static const struct {
                struct str text;
                const char *told;
        } cases[] = {
                {STR("; x\n1 2 3\n"), "x.swf:2: a job has 18 fields, this line has 3"},
                {STR("1 0 5 6h 4 -1 512 4 3600 1024 1 7 1 2 -1 1 -1 -1\n"),
                 "x.swf:1: field 4 (run time) is \"6h\": a number is needed"},
                {STR("1 -7 5 60 4 -1 512 4 3600 1024 1 7 1 2 -1 1 -1 -1\n"),
                 "x.swf:1: field 2 (submit time) is \"-7\": a time of 0 or more is needed"},
                {STR("1 0 5 60 nan -1 512 4 3600 1024 1 7 1 2 -1 1 -1 -1\n"),
                 "x.swf:1: field 5 (processors) is \"nan\": a number is needed"},
                {STR("1 1e300 5 60 4 -1 512 4 3600 1024 1 7 1 2 -1 1 -1 -1\n"),
                 "x.swf:1: field 2 (submit time) is \"1e300\": a number is needed"},
                {STR("; MaxProcs: 4\n"), "x.swf: no job in it that ran"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct sim_workload w = {0};
                struct sim_swf_header head;
                struct err err;

                assert_int_equal(sim_swf_read(&w, "x.swf", cases[i].text, &swf, &head, &err), -EINVAL);
                assert_string_equal(err.text, cases[i].told);
                sim_workload_deinit(&w);
        }
}

static const char one_five[] =
        "{\"workflow\": {\"specification\": {\"tasks\": ["
        "{\"id\": \"a\", \"parents\": [], \"children\": [\"b\"], \"inputFiles\": [\"in\"], \"outputFiles\": "
        "[\"mid\"]},"
        "{\"id\": \"b\", \"parents\": [\"a\"], \"children\": [], \"inputFiles\": [\"mid\", \"in\"], "
        "\"outputFiles\": []}],"
        "\"files\": [{\"id\": \"in\", \"sizeInBytes\": 1000}, {\"id\": \"mid\", \"sizeInBytes\": 50}]},"
        "\"execution\": {\"tasks\": [{\"id\": \"a\", \"runtimeInSeconds\": 2.5, \"coreCount\": 2,"
        "\"command\": {\"program\": \"p\"}}, {\"id\": \"b\", \"runtimeInSeconds\": 1, \"memoryInBytes\": "
        "2097152}]}}}";
static const char one_four[] =
        "{\"workflow\": {\"tasks\": ["
        "{\"name\": \"a\", \"runtimeInSeconds\": 2.5, \"cores\": 2, \"children\": [\"b\"], \"files\": ["
        "{\"link\": \"input\", \"name\": \"in\", \"sizeInBytes\": 1000}, {\"link\": \"output\", \"name\": "
        "\"mid\", "
        "\"sizeInBytes\": 50}]},"
        "{\"name\": \"b\", \"runtimeInSeconds\": 1, \"memoryInBytes\": 2097152, \"files\": ["
        "{\"link\": \"input\", \"name\": \"mid\"}, {\"link\": \"input\", \"name\": \"in\"}]}]}}";

static void a_workflow_is_read(void **state)
{
        static const char *const texts[] = {one_five, one_four};
        const struct sim_workflow_options o = {.cluster = 1, .copies = 2, .every_ms = 500};

        (void)state;
        for (int i = 0; i < 2; i++) {
                struct sim_workload w = {0};
                struct sim_workflow_header head;
                struct err err;

                assert_int_equal(sim_workflow_read(&w, "x.json", str_of(texts[i]), &o, &head, &err), 0);
                assert_int_equal(head.tasks, 2);
                assert_int_equal(head.files, 2);
                assert_int_equal(w.job_count, 4);
                assert_int_equal(w.file_count, 3); /* copies share what nobody makes */
                assert_int_equal(w.jobs[0].run_ms, 2500);
                assert_int_equal(w.jobs[0].cpus, 2);
                assert_int_equal(w.jobs[0].waits, 0);
                assert_int_equal(w.jobs[1].waits, 1);
                assert_int_equal(w.jobs[1].memory_mib, 2);
                assert_int_equal(w.jobs[1].inputs.count, 2);
                assert_int_equal(w.jobs[2].submit_ms, 500);
                assert_int_equal(w.refs[w.jobs[2].children.first], 3);
                assert_int_equal(w.refs[w.jobs[0].outputs.first], w.refs[w.jobs[1].inputs.first]);
                assert_int_not_equal(w.refs[w.jobs[0].outputs.first], w.refs[w.jobs[2].outputs.first]);
                assert_int_equal(w.files[w.refs[w.jobs[2].outputs.first]].bytes, 50);
                sim_workload_deinit(&w);
        }
}

static void a_bad_workflow_is_told(void **state)
{
        static const struct {
                struct str text;
                const char *told;
        } cases[] = {
                {STR("{\"workflow\":\n {\"tasks\": [}}"), "x.json:2: this is no JSON"},
                {STR("{\"workflow\": {}}"), "x.json: no tasks"},
                {STR("{\"workflow\": {\"tasks\": [{\"cores\": 1}]}}"),
                 "x.json: task number 1 has neither id nor name"},
                {STR("{\"workflow\": {\"tasks\": [{\"id\": \"a\"}, {\"id\": \"a\"}]}}"),
                 "x.json: task \"a\": there are two of this id"},
                {STR("{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"parents\": [\"z\"]}]}}"),
                 "x.json: task \"a\": a parent or child of it is not in the workflow"},
                {STR("{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"children\": [\"b\"]}, {\"id\": \"b\", "
                     "\"children\": [\"a\"]}]}}"),
                 "x.json: task \"a\": it waits for itself, by way of its parents"},
                {STR("{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"files\": [{\"name\": \"f\"}]}]}}"),
                 "x.json: task \"a\": a file needs a name, and a link that is input or output"},
                {STR("{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"files\": [{\"name\": \"f\", "
                     "\"link\": \"input\", \"size\": -4}]}]}}"),
                 "x.json: task \"a\": the size of its file \"f\" makes no sense"},
                {STR("{\"workflow\": {\"specification\": {\"tasks\": [{\"id\": \"a\"}], "
                     "\"files\": [{\"id\": \"f\", \"sizeInBytes\": 1e19}]}}}"),
                 "x.json: the size of file \"f\" makes no sense"},
                {STR("{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"runtime\": \"ten\"}]}}"),
                 "x.json: task \"a\": its run time is invalid"},
                {STR("{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"cores\": 1e9}]}}"),
                 "x.json: task \"a\": its number of cores is invalid"},
                {STR("{\"workflow\": {\"tasks\": [{\"id\": \"a\", \"memory\": 1e30}]}}"),
                 "x.json: task \"a\": its memory makes no sense"},
        };
        const struct sim_workflow_options o = {.copies = 1};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct sim_workload w = {0};
                struct sim_workflow_header head;
                struct err err;

                assert_int_equal(sim_workflow_read(&w, "x.json", cases[i].text, &o, &head, &err), -EINVAL);
                assert_memory_equal(err.text, cases[i].told, strlen(cases[i].told));
                sim_workload_deinit(&w);
        }
}

static void jobs_are_generated_from_the_seed(void **state)
{
        const struct sim_generate_options o = {
                .jobs = 103, .classes = 4, .clusters = 3, .run_ms = 1000, .input_bytes = 1000, .cpus_max = 8};
        struct sim_workload w[3] = {{0}};
        uint64_t sum = 0;

        (void)state;
        for (int i = 0; i < 3; i++) {
                struct sim_random random;

                sim_random_seed(&random, i == 2 ? 8 : 7);
                sim_generate(&w[i], &o, &random);
        }
        assert_int_equal(w[0].job_count, 103);
        for (size_t i = 0; i < 103; i++)
                sum += w[0].jobs[i].together;
        assert_int_equal(sum, 103);
        assert_memory_equal(w[0].jobs, w[1].jobs, 103 * sizeof(struct sim_job));
        assert_memory_not_equal(w[0].jobs, w[2].jobs, 103 * sizeof(struct sim_job));
        for (int i = 0; i < 3; i++)
                sim_workload_deinit(&w[i]);
}

static void outages_are_read(void **state)
{
        static const struct {
                const char *text, *says;
        } bad[] = {
                {"north 0 10\neast 5 6\n", "x:2: there is no cluster \"east\""},
                {"north-3 5 6\n", "x:1: there is no cluster \"north-3\""}, /* it has three */
                {"north-x 5 6\n", "x:1: there is no cluster"},
                {"north 5\n", "x:1: a place and two times are needed"},
                {"north 6 5\n", "x:1: from \"6\" to \"5\""},
                {"north -1 5\n", "x:1: from \"-1\""},
                {"north now 5\n", "x:1: from \"now\""},
                {"north 0 1e300\n", "x:1: from \"0\""},
                {"north nan nan\n", "x:1: from \"nan\""},
        };
        struct sim_site s;
        struct err err;

        (void)state;
        sim_site_init(&s);
        sim_site_add(&s, STR("north"), 3, 4);
        sim_site_add(&s, STR("north-west"), 1, 4);
        assert_int_equal(sim_outages_read(&s, "x",
                                          STR("# node, down, up\n\nnorth-2\t60 120.5 disk\n"
                                              "north-west 0 5 ; planned\n north 1 2"),
                                          &err),
                         0);
        assert_int_equal(s.clusters[0].outage_count, 2);
        assert_int_equal(s.clusters[0].outages[0].agent, 2);
        assert_int_equal(s.clusters[0].outages[0].from_ms, 60000);
        assert_int_equal(s.clusters[0].outages[0].to_ms, 120500);
        assert_int_equal(s.clusters[0].outages[1].agent, SIM_ALL_AGENTS);
        assert_int_equal(s.clusters[1].outage_count, 1);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                assert_int_equal(sim_outages_read(&s, "x", str_of(bad[i].text), &err), -EINVAL);
                if (strncmp(err.text, bad[i].says, strlen(bad[i].says)) != 0)
                        fail_msg("%s, not %s", err.text, bad[i].says);
        }
        sim_site_deinit(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_log_is_read),
                cmocka_unit_test(a_bad_log_is_told_with_its_line),
                cmocka_unit_test(a_workflow_is_read),
                cmocka_unit_test(a_bad_workflow_is_told),
                cmocka_unit_test(jobs_are_generated_from_the_seed),
                cmocka_unit_test(outages_are_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
