/* Recorded answers of slurmrestd of Slurm 22.05 (with fewer members) are read, and requests are made;
 * answers of 24.11 and 26.05 are in tests/data/slurmrestd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/fs.h"
#include "run/batch/batch.h"

#define META "{\"meta\":{\"plugin\":{\"type\":\"openapi\\/v0.0.38\",\"name\":\"Slurm OpenAPI v0.0.38\"}},"

static const struct batch_system *const rest = &batch_slurm_rest;

struct answer {
        struct buf out, errors;
};

static void on_row(void *arg, const struct json_skim_rows *rows, const struct str *values)
{
        struct answer *a = arg;

        rest->service->take("root", rows, values, &a->out, &a->errors);
}

static void skim(struct answer *a, const char *text)
{
        struct json_skim s;

        json_skim_init(&s, rest->service->rows, on_row, a);
        assert_int_equal(json_skim_take(&s, str_of(text)), 0);
        assert_true(json_skim_done(&s));
        json_skim_deinit(&s);
}

static void answer_deinit(struct answer *a)
{
        buf_deinit(&a->out);
        buf_deinit(&a->errors);
}
#define ANSWER_CLEANUP __attribute__((cleanup(answer_deinit)))

static void write_line(void *arg, const struct batch_line *l)
{
        buf_printf(arg, "%s" STR_FMT " " STR_FMT " %d (" STR_FMT ")\n", l->others ? "others of " : "",
                   STR_ARG(l->native), STR_ARG(l->name), (int)l->phase, STR_ARG(l->reason));
}

static void jobs(void **state)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}};
        BUF_CLEANUP struct buf got = {0};

        (void)state;
        skim(&a, META
             "\"errors\":[],\"jobs\":["
             "{\"account\":\"\",\"array_job_id\":1,\"array_task_id\":0,\"array_task_string\":\"\",\"flags\":["
             "\"JOB_WAS_RUNNING\"],\"job_id\":2,\"job_resources\":{\"nodes\":\"a1\",\"allocated_nodes\":[{"
             "\"sockets\":{\"0\":{\"cores\":{\"0\":\"allocated\"}}},\"nodename\":\"a1\"}]},\"job_state\":"
             "\"RUNNING\",\"name\":\"drover-12345678-1a\",\"partition\":\"main\",\"state_reason\":\"None\","
             "\"user_id\":0,\"user_name\":\"root\"},"
             "{\"array_job_id\":1,\"array_task_id\":null,\"array_task_string\":\"2-3,6,8-12:2%4\",\"job_id\":"
             "1,"
             "\"job_state\":\"PENDING\",\"name\":\"drover-12345678-1a\",\"state_reason\":\"Resources\","
             "\"user_name\":\"root\"},"
             "{\"array_job_id\":0,\"array_task_id\":null,\"array_task_string\":\"\",\"job_id\":7,\"job_"
             "state\":"
             "\"TIMEOUT\",\"name\":\"drover-12345678-1b\",\"state_reason\":\"TimeLimit\",\"user_name\":"
             "\"root\"},"
             "{\"array_job_id\":0,\"array_task_id\":null,\"job_id\":8,\"job_state\":\"FAILED\",\"name\":"
             "\"drover-12345678-1c\",\"state_reason\":\"None\",\"user_name\":\"games\"},"
             "{\"array_job_id\":0,\"array_task_id\":null,\"job_id\":9,\"job_state\":\"RUNNING\",\"name\":"
             "\"of-87654321-1c\",\"state_reason\":\"None\",\"user_name\":\"root\"},"
             "{\"array_job_id\":0,\"array_task_id\":null,\"job_id\":10,\"job_state\":\"RUNNING\",\"name\":"
             "\"drover-12345678-\\n1|2\",\"state_reason\":\"None\",\"user_name\":\"root\"},"
             "{\"array_job_id\":4,\"array_task_id\":null,\"array_task_string\":\"2-3,5,43...\",\"job_id\":4,"
             "\"job_state\":\"PENDING\",\"name\":\"drover-12345678-1d\",\"state_reason\":\"Priority\","
             "\"user_name\":\"root\"}]}");
        assert_string_equal(buf_z(&a.errors), "");
        buf_z(&a.out);
        rest->status_read(buf_view(&a.out), write_line, &got);
        assert_string_equal(buf_z(&got),
                            "1_0 drover-12345678-1a 1 (None)\n"
                            "1_2 drover-12345678-1a 0 (Resources)\n"
                            "1_3 drover-12345678-1a 0 (Resources)\n"
                            "1_6 drover-12345678-1a 0 (Resources)\n"
                            "1_8 drover-12345678-1a 0 (Resources)\n"
                            "1_10 drover-12345678-1a 0 (Resources)\n"
                            "1_12 drover-12345678-1a 0 (Resources)\n"
                            "7 drover-12345678-1b 4 (TimeLimit)\n"
                            "8 drover-12345678-1c 2 (slurmrestd runs jobs as games, not as root)\n"
                            "10 drover-12345678-?1?2 1 (None)\n"
                            "others of 4 drover-12345678-1d 0 (Priority)\n"
                            "4_2 drover-12345678-1d 0 (Priority)\n"
                            "4_3 drover-12345678-1d 0 (Priority)\n"
                            "4_5 drover-12345678-1d 0 (Priority)\n");
}

/* Each partition of a node is looked for among thousands; a real node is in a few. */
static void a_node_of_many_partitions(void **state)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}};
        BUF_CLEANUP struct buf text = {0};
        struct str left, line;
        unsigned lines = 0;

        (void)state;
        buf_addz(&text, "{\"partitions\":[{\"name\":\"a\",\"state\":\"UP\"}],\"nodes\":[{\"name\":\"n\","
                        "\"cpus\":4,\"alloc_cpus\":0,\"state\":\"idle\",\"partitions\":[\"a\"");
        for (int i = 0; i < 30000; i++)
                buf_addz(&text, ",\"a\"");
        buf_addz(&text, "]}]}");
        skim(&a, buf_z(&text));
        for (left = buf_view(&a.out); left.n && str_cut(&left, '\n', &line);)
                lines += str_starts(line, STR("a "));
        assert_in_range(lines, 1, 100);
}

static void too_many_members(void **state)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}};

        (void)state;
        skim(&a, "{\"jobs\":[{\"array_job_id\":1,\"array_task_string\":\"0-18446744073709551615,7-3,x,-,1-,"
                 "5:0,6-8:0\",\"job_state\":\"PENDING\",\"name\":\"drover-12345678-1a\"}]}");
        assert_true(a.out.n < 100000);
}

/* Each list is as long as a value may be. */
static void too_many_ranges(void **state)
{
        static const char *const users[] = {"root", "games"};

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                ANSWER_CLEANUP struct answer a = {{0}, {0}};
                BUF_CLEANUP struct buf text = {0};

                buf_addz(&text, "{\"jobs\":[{\"array_job_id\":1,\"array_task_string\":\"");
                for (int n = 0; n < 8000; n++)
                        buf_addz(&text, "0-99999,");
                buf_printf(&text,
                           "\",\"job_state\":\"PENDING\",\"name\":\"drover-12345678-1a\",\"user_name\":"
                           "\"%s\"}]}",
                           users[i]);
                skim(&a, buf_z(&text));
                assert_true(a.out.n > 0 && a.out.n < (i == 0 ? 100000 : 200));
        }
}

static void past(void **state)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}};
        BUF_CLEANUP struct buf got = {0};
        struct batch_call c = {0};

        (void)state;
        skim(&a, META
             "\"errors\":[],\"jobs\":[{\"account\":\"\",\"array\":{\"job_id\":5,\"limits\":{},\"task_id\":3},"
             "\"job_id\":8,\"name\":\"drover-12345678-1a\",\"state\":{\"current\":\"CANCELLED\",\"reason\":"
             "\"None\"},\"user\":\"root\",\"steps\":[{\"state\":\"X\"}]},"
             "{\"array\":{\"job_id\":0,\"task_id\":null},\"job_id\":9,\"name\":\"drover-12345678-1b\","
             "\"state\":{\"current\":\"OUT_OF_MEMORY\",\"reason\":\"None\"},\"user\":\"root\"}]}");
        buf_z(&a.out);
        rest->past_read(buf_view(&a.out), write_line, &got);
        assert_string_equal(buf_z(&got), "5_3 drover-12345678-1a 3 (None)\n9 drover-12345678-1b 5 (None)\n");
        rest->past(&c, "ann", "5_3,5_4,9,5_1");
        assert_string_equal(c.method, "GET");
        assert_int_equal(c.paths.n, 3);
        assert_string_equal(c.paths.v[0], "/slurmdb/{version}/job/5");
        assert_string_equal(c.paths.v[1], "/slurmdb/{version}/job/9");
        batch_call_deinit(&c);
}

static void submitted(void **state)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}}, none = {{0}, {0}};
        BUF_CLEANUP struct buf native = {0};

        (void)state;
        /* it has to wait, which is no refusal */
        skim(&a, META
             "\"errors\":[{\"error_code\":2015,\"error\":\"Requested partition configuration not available "
             "now\"}],\"job_id\":6,\"step_id\":\"BATCH\",\"job_submit_user_msg\":\"\"}");
        assert_true(rest->submitted(buf_view(&a.out), &native));
        assert_string_equal(buf_z(&native), "6");
        skim(&none, META "\"errors\":[],\"job_id\":0}");
        assert_false(rest->submitted(buf_view(&none.out), &native));
        assert_false(rest->submitted(STR(""), &native));
        assert_false(rest->submitted(STR("submitted 7 x\n"), &native));
}

static void assert_errors(const char *text, const char *want, bool refused)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}};

        skim(&a, text);
        assert_string_equal(buf_z(&a.errors), want);
        bool full = rest->full(buf_view(&a.errors));
        assert_int_equal(!full && rest->refused(1, buf_view(&a.errors)), refused);
}

static void errors(void **state)
{
        (void)state;
        assert_errors(META
                      "\"errors\":[{\"error_code\":2000,\"error\":\"Invalid partition name specified\"}]}",
                      "Invalid partition name specified (2000)", true);
        assert_errors(META
                      "\"errors\":[{\"error_code\":2081,\"error\":\"Invalid job array specification\"}]}",
                      "Invalid job array specification (2081)", true);
        assert_errors(
                META
                "\"errors\":[{\"description\":\"Unknown key \\\"nonsense\\\"\",\"source\":\"hsearch_r\"},"
                "{\"error_code\":9001,\"error\":\"Failure during parsing\"}]}",
                "Unknown key \"nonsense\"; Failure during parsing (9001)", true);
        assert_errors(
                META
                "\"errors\":[{\"error_code\":5005,\"error\":\"Zero Bytes were transmitted or received\"}]}",
                "Zero Bytes were transmitted or received (5005)", false);
        assert_errors(META
                      "\"errors\":[{\"description\":\"Failed while looking for jobs\",\"error_number\":-1,"
                      "\"error\":\"Unspecified error\",\"source\":\"slurm_load_jobs\"}],\"jobs\":[]}",
                      "Unspecified error (-1)", false);
        assert_errors(META "\"errors\":[{\"error\":\"Unspecified error\",\"errno\":-1}],\"nodes\":[]}",
                      "Unspecified error (-1)", false);
        assert_errors(
                META "\"errors\":[{\"error_code\":2050,\"error\":\"Job violates accounting\\/QOS policy (job "
                     "submit limit, user's size and\\/or time limits)\"}]}",
                "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits) "
                "(2050)",
                false);
        assert_true(rest->full(STR("Job violates accounting/QOS policy (job submit limit, ...) (2050)")));
        assert_true(rest->refused_array(STR("Invalid job array specification (2081)")));
}

/* The database's answers have a good status, even when it is unreachable. */
static void database_answers(void **state)
{
        ANSWER_CLEANUP struct answer away = {{0}, {0}}, nothing = {{0}, {0}};

        (void)state;
        skim(&away, META
             "\"errors\":[{\"description\":\"Failed connecting to slurmdbd\",\"error_number\":7000,"
             "\"error\":\"Unable to connect to database\",\"source\":\"slurmdb_jobs_get\"}],\"jobs\":[]}");
        assert_true(rest->service->fault(buf_view(&away.errors)));
        assert_true(rest->past_away(buf_view(&away.errors)));
        skim(&nothing, META "\"errors\":[{\"description\":\"Nothing found\",\"error_number\":9003,\"error\":"
                            "\"Nothing found with query\",\"source\":\"slurmdb_jobs_get\"}],\"jobs\":[]}");
        assert_false(rest->service->fault(buf_view(&nothing.errors)));
        assert_false(
                rest->past_away(STR("slurmrestd answers with HTTP status 404: Unable find requested URL.")));
}

static const char partitions[] =
        META "\"errors\":[],\"partitions\":[{\"flags\":[\"default\"],\"max_time_limit\":-1,\"name\":\"main\","
             "\"state\":\"UP\"},{\"flags\":[],\"max_time_limit\":90,\"name\":\"short\",\"state\":\"UP\"},{"
             "\"flags\":[],\"max_time_limit\":-1,\"name\":\"shut\",\"state\":\"DOWN\"}]}";
static const char nodes[] = META
        "\"errors\":[],\"nodes\":["
        "{\"cpus\":4,\"gres\":\"gpu:tiny:2\",\"gres_used\":\"gpu:tiny:1(IDX:0)\",\"name\":\"a1\",\"state\":"
        "\"mixed\",\"state_flags\":[],\"partitions\":[\"main\",\"short\",\"shut\"],\"real_memory\":4000,"
        "\"alloc_memory\":200,\"alloc_cpus\":2,\"idle_cpus\":2},"
        "{\"cpus\":8,\"gres\":\"\",\"gres_used\":\"gpu:0\",\"name\":\"a2\",\"state\":\"idle\",\"state_"
        "flags\":[],"
        "\"partitions\":[\"main\",\"shut\"],\"real_memory\":4000,\"alloc_memory\":0,\"alloc_cpus\":0},"
        "{\"cpus\":4,\"gres\":\"\",\"gres_used\":\"gpu:0\",\"name\":\"a3\",\"state\":\"down\",\"state_"
        "flags\":[],"
        "\"partitions\":[\"main\",\"short\"],\"real_memory\":4000,\"alloc_memory\":0,\"alloc_cpus\":0},"
        "{\"cpus\":4,\"gres\":\"\",\"gres_used\":\"gpu:0\",\"name\":\"a4\",\"state\":\"idle\",\"state_"
        "flags\":["
        "\"DRAIN\"],\"partitions\":[\"main\"],\"real_memory\":4000,\"alloc_memory\":0,\"alloc_cpus\":0}]}";

static struct run_capacity capacity_of(const char *partition)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}};
        struct run_capacity c = {.known = true};
        const struct run_word word = {(char *)"partition", (char *)(uintptr_t)partition};
        const struct batch_settings s = {&word, partition ? 1 : 0};

        skim(&a, partitions);
        skim(&a, nodes);
        rest->capacity_read(&s, buf_view(&a.out), &c);
        return c;
}

static void capacity(void **state)
{
        (void)state;
        struct run_capacity c = capacity_of(NULL); /* the default one */
        assert_int_equal(c.nodes, 4);
        assert_int_equal(c.cpus_milli, 12000);
        assert_int_equal(c.idle_cpus_milli, 10000);
        assert_int_equal(c.node_cpus_milli, 8000);
        assert_int_equal(c.memory_bytes >> 20, 8000);
        assert_int_equal(c.idle_memory_bytes >> 20, 7800);
        assert_int_equal(c.gpus, 2);
        assert_int_equal(c.idle_gpus, 1);
        assert_true(c.walltime_max_ms == UINT64_MAX);
        c = capacity_of("short");
        assert_int_equal(c.walltime_max_ms, 90 * 60 * 1000);
        assert_int_equal(c.nodes, 2);
        assert_int_equal(c.idle_cpus_milli, 2000);
        assert_int_equal(capacity_of("shut").nodes, 0);
        assert_int_equal(capacity_of("shor").nodes, 0);
        assert_int_equal(capacity_of("none,short").nodes, 2);
}

/* A flag, as the older API tells it; the later one has it in the state. */
static unsigned idle_with(const char *state, const char *flag)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}};
        BUF_CLEANUP struct buf text = {0};
        struct run_capacity c = {.known = true};
        const struct batch_settings s = {NULL, 0};

        skim(&a, partitions);
        buf_printf(&text,
                   META
                   "\"errors\":[],\"nodes\":[{\"name\":\"a1\",\"cpus\":4,\"state\":%s,\"state_flags\":[%s],"
                   "\"partitions\":[\"main\"],\"real_memory\":4000,\"alloc_memory\":0,\"alloc_cpus\":1}]}",
                   state, flag);
        skim(&a, buf_z(&text));
        rest->capacity_read(&s, buf_view(&a.out), &c);
        return (unsigned)c.idle_cpus_milli / 1000;
}

static void nodes_that_take_no_jobs(void **state)
{
        (void)state;
        assert_int_equal(idle_with("\"mixed\"", "\"CLOUD\""), 3);
        assert_int_equal(idle_with("\"mixed\"", "\"RESERVED\""), 0);
        assert_int_equal(idle_with("\"mixed\"", "\"NOT_RESPONDING\""), 0);
        assert_int_equal(idle_with("\"mixed\"", "\"PLANNED\""), 0);
        assert_int_equal(idle_with("[\"MIXED\",\"MAINTENANCE\"]", ""), 0);
        assert_int_equal(idle_with("[\"MIXED\",\"REBOOT_ISSUED\"]", ""), 0);
        assert_int_equal(idle_with("[\"MIXED\",\"POWERING_UP\"]", ""), 3);
}

/* The options of a stored script become members of the request. */
static void assert_submits(const char *version, const char *want)
{
        struct run_word settings[] = {{"partition", "short"}, {"requeue", "no"}},
                        words[] = {{"SlurmQOS", "high"},       {"SlurmAccount", "phy"},
                                   {"SlurmConstraint", "a&b"}, {"SlurmLicenses", "x:2"},
                                   {"SlurmReservation", "r"},  {"SlurmComment", "c"}};
        char *argv[] = {(char *)"true", NULL};
        const struct run_spec spec = {.sandbox = "/box",
                                      .path = argv[0],
                                      .argv = argv,
                                      .cpus_milli = 1500,
                                      .memory_bytes = 100 << 20,
                                      .walltime_ms = 3600001,
                                      .gpus = 2,
                                      .words = words,
                                      .word_count = 6};
        struct batch_call c = {.settings = &(struct batch_settings){settings, 2}, .version = version};
        BUF_CLEANUP struct buf head = {0}, script = {0};
        struct args env = {0};
        struct err err = {""};

        assert_int_equal(rest->resources(c.settings, &spec, &head, &err), 0);
        rest->naming("drover-1-2", "/logs/drover-1-2", 3, &head);
        buf_printf(&script, "#!/bin/sh\n%s# no option\n\"x\"\n#SBATCH --comment=of the program\n",
                   buf_z(&head));
        args_add(&env, STR("PATH=/bin"));
        args_add(&env, STR("A=b=\"c\""));
        rest->submit(&c, &(struct batch_sending){.text = buf_view(&script), .env = &env, .count = 3});
        assert_string_equal(c.method, "POST");
        assert_true(c.once);
        assert_string_equal(c.paths.v[0], "/slurm/{version}/job/submit");
        struct str body = buf_view(&c.input);
        ptrdiff_t job = str_search(body, STR(",\"job\":"));
        assert_true(job > 0 && str_starts(body, STR("{\"script\":\"#!/bin/sh\\n#SBATCH --nodes=1\\n")));
        MEM_CLEANUP char *rest_of = str_dupz(str_skip(body, (size_t)job));
        assert_string_equal(rest_of, want);
        args_deinit(&env);
        batch_call_deinit(&c);
}

static void submits(void **state)
{
        (void)state;
        assert_submits(
                "v0.0.38",
                ",\"job\":{\"nodes\":[1,1],\"tasks\":1,\"current_working_directory\":\"/"
                "\",\"standard_input\":"
                "\"/dev/null\",\"open_mode\":\"append\",\"no_requeue\":true,\"cpus_per_task\":2,"
                "\"memory_per_node\":\"100M\",\"time_limit\":61,\"gres\":\"gpu:2\",\"partition\":\"short\","
                "\"account\":"
                "\"phy\",\"qos\":\"high\",\"constraints\":\"a&b\",\"licenses\":\"x:2\",\"reservation\":\"r\","
                "\"comment\":\"c\",\"name\":\"drover-1-2\",\"array\":\"0-2\",\"standard_output\":"
                "\"/logs/drover-1-2.%a.log\",\"environment\":{\"PATH\":\"/bin\",\"A\":\"b=\\\"c\\\"\"}}}");
        assert_submits(
                "v0.0.45",
                ",\"job\":{\"nodes\":\"1\",\"tasks\":1,\"current_working_directory\":\"/"
                "\",\"standard_input\":"
                "\"/dev/null\",\"open_mode\":[\"append\"],\"requeue\":false,\"cpus_per_task\":2,"
                "\"memory_per_node\":{\"set\":true,\"number\":100},\"time_limit\":{\"set\":true,\"number\":"
                "61},"
                "\"tres_per_node\":\"gres/gpu:2\",\"partition\":\"short\","
                "\"account\":"
                "\"phy\",\"qos\":\"high\",\"constraints\":\"a&b\",\"licenses\":\"x:2\",\"reservation\":\"r\","
                "\"comment\":\"c\",\"name\":\"drover-1-2\",\"array\":\"0-2\",\"standard_output\":"
                "\"/logs/drover-1-2.%a.log\",\"environment\":[\"PATH=/bin\",\"A=b=\\\"c\\\"\"]}}");
}

static const char *acts_version;

static void assert_acts(enum batch_verb verb, const char *natives, const char *method, const char *body,
                        const char *paths)
{
        struct batch_call c = {.version = acts_version};
        BUF_CLEANUP struct buf got = {0};

        rest->act(&c, verb, str_of(natives));
        for (size_t i = 0; i < c.paths.n; i++)
                buf_printf(&got, "%s%s", i ? " " : "", c.paths.v[i]);
        assert_string_equal(c.method, method);
        assert_string_equal(buf_z(&c.input), body);
        assert_string_equal(buf_z(&got), paths);
        batch_call_deinit(&c);
}

static void acts(void **state)
{
        (void)state;
        acts_version = "v0.0.38";
        assert_acts(BATCH_END, "17", "DELETE", "", "/slurm/{version}/job/17");
        assert_acts(BATCH_END, "17_1 17_3 18 19 20_0 21_0 17_4", "DELETE", "",
                    "/slurm/{version}/job/17_%5B1%2C3%5D /slurm/{version}/job/18 /slurm/{version}/job/19 "
                    "/slurm/{version}/job/20_%5B0%5D /slurm/{version}/job/21_%5B0%5D "
                    "/slurm/{version}/job/17_%5B4%5D");
        assert_acts(BATCH_STOP, "17_1", "DELETE", "", "/slurm/{version}/job/17_%5B1%5D?signal=TSTP");
        assert_acts(BATCH_CONTINUE, "9", "DELETE", "", "/slurm/{version}/job/9?signal=CONT");
        assert_acts(BATCH_NUDGE, "9", "DELETE", "", "/slurm/{version}/job/9?signal=URG");
        assert_acts(BATCH_HOLD, "9 10_2", "POST", "{\"hold\":true}",
                    "/slurm/{version}/job/9 /slurm/{version}/job/10_%5B2%5D");
        assert_acts(BATCH_RELEASE, "9", "POST", "{\"hold\":false}", "/slurm/{version}/job/9");
}

static void later_acts(void **state)
{
        (void)state;
        acts_version = "v0.0.41";
        assert_acts(BATCH_END, "17_1 18", "DELETE", "{\"jobs\":[\"17_1\",\"18\"]}", "/slurm/{version}/jobs/");
        assert_acts(BATCH_STOP, "17_1", "DELETE",
                    "{\"signal\":\"TSTP\",\"flags\":[\"FULL_JOB\"],\"jobs\":[\"17_1\"]}",
                    "/slurm/{version}/jobs/");
        assert_acts(BATCH_NUDGE, "9", "DELETE",
                    "{\"signal\":\"URG\",\"flags\":[\"BATCH_JOB\"],\"jobs\":[\"9\"]}",
                    "/slurm/{version}/jobs/");
        assert_acts(BATCH_HOLD, "9 10_2", "POST", "{\"hold\":true}", "/slurm/{version}/job/9");
        assert_acts(BATCH_RELEASE, "10_2", "POST", "{\"hold\":false}", "");
}

/* ---- as it was recorded */

static const char *const releases[] = {"24.11.5-v0.0.41", "24.11.5-v0.0.42", "26.05.5-v0.0.43",
                                       "26.05.5-v0.0.44", "26.05.5-v0.0.45", NULL};

/* Finds the answer with this name in the release's file; false: there is none. */
static bool recorded(const char *release, const char *name, struct answer *a)
{
        BUF_CLEANUP struct buf path = {0}, text = {0};

        buf_printf(&path, "%s/slurmrestd/%s.txt", getenv("RECORDED"), release);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 1 << 20, &text, NULL), 0);
        struct str rest_of = buf_view(&text), line, word;
        while (rest_of.n && str_cut(&rest_of, '\n', &line)) {
                if (!str_cut(&line, ' ', &word) || !str_eqz(word, name))
                        continue;
                MEM_CLEANUP char *json = str_dupz(line);
                skim(a, json);
                return true;
        }
        return false;
}

static void assert_recorded_errors(const char *release, const char *name, const char *want)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}};

        assert_true(recorded(release, name, &a));
        assert_string_equal(buf_z(&a.errors), want);
}

static void recorded_jobs(void **state)
{
        (void)state;
        for (size_t i = 0; releases[i]; i++) {
                ANSWER_CLEANUP struct answer now = {{0}, {0}}, past = {{0}, {0}};
                BUF_CLEANUP struct buf got = {0};

                assert_true(recorded(releases[i], "jobs", &now));
                assert_string_equal(buf_z(&now.errors), "");
                buf_z(&now.out);
                rest->status_read(buf_view(&now.out), write_line, &got);
                assert_string_equal(buf_z(&got), "1_0 drover-12345678-1a 3 (None)\n"
                                                 "1_1 drover-12345678-1a 1 (None)\n"
                                                 "9 drover-12345678-1g 0 (Priority)\n"
                                                 "1_8 drover-12345678-1a 0 (Resources)\n"
                                                 "1_9 drover-12345678-1a 0 (Resources)\n"
                                                 "1_10 drover-12345678-1a 0 (Resources)\n"
                                                 "1_11 drover-12345678-1a 0 (Resources)\n"
                                                 "1_12 drover-12345678-1a 0 (Resources)\n");
                buf_reset(&got);
                assert_true(recorded(releases[i], "past", &past));
                buf_z(&past.out);
                rest->past_read(buf_view(&past.out), write_line, &got);
                assert_string_equal(buf_z(&got), "1 drover-12345678-1a 0 (None)\n"
                                                 "1_0 drover-12345678-1a 3 (None)\n"
                                                 "1_1 drover-12345678-1a 1 (None)\n");
        }
}

/* A state with flags. */
static void states(void **state)
{
        static const struct {
                const char *states;
                int phase;
        } of[] = {{"\"PENDING\"", BATCH_WAITING},
                  {"\"RUNNING\",\"COMPLETING\"", BATCH_RUNNING},
                  {"\"CANCELLED\",\"COMPLETING\"", BATCH_RUNNING},
                  {"\"PENDING\",\"LAUNCH_FAILED\",\"REQUEUE_HOLD\"", BATCH_WAITING},
                  {"\"RUNNING\",\"CONFIGURING\",\"POWER_UP_NODE\"", BATCH_WAITING},
                  {"\"NODE_FAIL\"", BATCH_LOST},
                  {"\"NEWS\"", BATCH_RUNNING}};

        (void)state;
        for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
                ANSWER_CLEANUP struct answer a = {{0}, {0}};
                BUF_CLEANUP struct buf text = {0}, got = {0}, want = {0};

                buf_printf(&text, "{\"jobs\":[{\"job_id\":7,\"name\":\"drover-1\",\"job_state\":[%s]}]}",
                           of[i].states);
                skim(&a, buf_z(&text));
                buf_z(&a.out);
                rest->status_read(buf_view(&a.out), write_line, &got);
                buf_printf(&want, "7 drover-1 %d ()\n", of[i].phase);
                assert_string_equal(buf_z(&got), buf_z(&want));
        }
}

static struct run_capacity recorded_capacity(const char *release, const char *partition)
{
        ANSWER_CLEANUP struct answer a = {{0}, {0}};
        struct run_capacity c = {.known = true};
        const struct run_word word = {(char *)"partition", (char *)(uintptr_t)partition};
        const struct batch_settings s = {&word, partition ? 1 : 0};

        assert_true(recorded(release, "partitions", &a) && recorded(release, "nodes", &a));
        rest->capacity_read(&s, buf_view(&a.out), &c);
        return c;
}

/* One node is full, with GPUs, and one is drained. Only the newest version marks the default partition. */
static void recorded_nodes(void **state)
{
        (void)state;
        for (size_t i = 0; releases[i]; i++) {
                struct run_capacity c = recorded_capacity(releases[i], "short");

                assert_int_equal(c.nodes, 2);
                assert_int_equal(c.cpus_milli, 8000);
                assert_int_equal(c.idle_cpus_milli, 0);
                assert_int_equal(c.memory_bytes >> 20, 8000);
                assert_int_equal(c.node_gpus, 2);
                assert_int_equal(c.walltime_max_ms, 5 * 60 * 1000);
                assert_true(recorded_capacity(releases[i], "main").walltime_max_ms == UINT64_MAX);
                assert_string_equal(recorded_capacity(releases[i], "shut").nothing, "it takes no jobs");
                c = recorded_capacity(releases[i], NULL);
                if (!strcmp(releases[i], "26.05.5-v0.0.45"))
                        assert_int_equal(c.cpus_milli, 8000);
                else
                        assert_non_null(strstr(c.nothing, "does not tell which partition"));
        }
}

static void recorded_words(void **state)
{
        static const char *const full[] = {"24.11.5-v0.0.42", "26.05.5-v0.0.45"};

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                ANSWER_CLEANUP struct answer taken = {{0}, {0}}, both = {{0}, {0}}, a = {{0}, {0}},
                                             b = {{0}, {0}};
                BUF_CLEANUP struct buf native = {0};

                assert_true(recorded(full[i], "submitted", &taken));
                assert_true(rest->submitted(buf_view(&taken.out), &native));
                assert_string_equal(buf_z(&native), "1");
                assert_recorded_errors(full[i], "refused", "Invalid partition name specified (2000)");
                assert_recorded_errors(full[i], "refused-array", "Invalid job array specification (2081)");
                /* it was taken: no refusal */
                assert_true(recorded(full[i], "refused-form", &both));
                assert_string_equal(buf_z(&both.out), "submitted 2\n");
                assert_false(rest->refused(1, buf_view(&both.errors)));
                assert_true(recorded(full[i], "full", &a));
                assert_true(rest->full(buf_view(&a.errors)));
                assert_recorded_errors(full[i], "no-job", "Invalid job id specified (2017)");
                assert_recorded_errors(full[i], "past-none", "");
                assert_true(recorded(full[i], "past-away", &b));
                assert_true(rest->past_away(buf_view(&b.errors)));
                buf_reset(&b.errors);
                assert_true(recorded(full[i], "doubt", &b));
                assert_true(rest->service->doubt(buf_view(&b.errors)));
                buf_reset(&b.errors);
                assert_true(recorded(full[i], "away-submit", &b));
                assert_false(rest->refused(1, buf_view(&b.errors)));
        }
}

static int check(const char *where, const char *token)
{
        struct err err;
        const struct run_word words[] = {{(char *)"rest", (char *)(uintptr_t)where},
                                         {(char *)"token_file", (char *)(uintptr_t)token}};

        return rest->check(&(struct batch_settings){words, token ? 2 : 1}, &err);
}

static void settings(void **state)
{
        (void)state;
        assert_int_equal(check("unix:/run/slurmrestd.socket", NULL), 0);
        assert_int_equal(check("http://head:6820", "/token"), 0);
        assert_int_equal(check("http://[::1]:6820", "/token"), 0);
        assert_int_equal(check("http://head:6820", NULL), -EINVAL);
        assert_int_equal(check("http://head", "/token"), -EINVAL);
        assert_int_equal(check("http://head:0", "/token"), -EINVAL);
        assert_int_equal(check("http://:6820", "/token"), -EINVAL);
        assert_int_equal(check("http://head:6820/", "/token"), -EINVAL);
        assert_int_equal(check("https://head:6820", "/token"), -EINVAL);
        assert_int_equal(check("unix:socket", NULL), -EINVAL);
        assert_int_equal(check("head:6820", "/token"), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(jobs),
                cmocka_unit_test(a_node_of_many_partitions),
                cmocka_unit_test(too_many_members),
                cmocka_unit_test(too_many_ranges),
                cmocka_unit_test(past),
                cmocka_unit_test(submitted),
                cmocka_unit_test(database_answers),
                cmocka_unit_test(errors),
                cmocka_unit_test(capacity),
                cmocka_unit_test(nodes_that_take_no_jobs),
                cmocka_unit_test(submits),
                cmocka_unit_test(acts),
                cmocka_unit_test(settings),
                cmocka_unit_test(later_acts),
                cmocka_unit_test(recorded_jobs),
                cmocka_unit_test(states),
                cmocka_unit_test(recorded_nodes),
                cmocka_unit_test(recorded_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
