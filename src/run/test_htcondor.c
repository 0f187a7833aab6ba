/* What HTCondor's commands print, in the form of 8.8 to 23: condor_q, condor_history and condor_status with
 * -json, condor_submit -terse, and its errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/mem.h"
#include "run/batch.h"

static const struct batch_settings none = {NULL, 0};

/* What was read of an answer, as "native name phase (reason)" lines, with "stays" behind it. */
static void write_line(void *arg, const struct batch_line *l)
{
        buf_printf(arg, STR_FMT " " STR_FMT " %d (" STR_FMT ")%s\n", STR_ARG(l->native), STR_ARG(l->name),
                   (int)l->phase, STR_ARG(l->reason), l->stays ? " stays" : "");
}

static void assert_read(const char *text, const char *want)
{
        MEM_CLEANUP char *copy = mem_dupz(text);
        BUF_CLEANUP struct buf got = {0};
        assert_true(batch_htcondor.is_answer(str_of(copy)));
        batch_htcondor.status_read(str_of(copy), write_line, &got);
        assert_string_equal(buf_z(&got), want);
}

#define JOB(cluster, proc, rest)                                                                             \
        "{\n  \"ClusterId\": " #cluster ",\n  \"DroverCount\": 3,\n  \"DroverName\": \"d-1\",\n"             \
        "  \"ProcId\": " #proc ",\n  " rest "\n}\n"

static void states(void **state)
{
        (void)state;
        assert_read(
                "[\n" JOB(7, 0, "\"JobStatus\": 1,\n  \"NumJobStarts\": 0") ",\n" JOB(7, 1, "\"JobStatus\": 2,\n  \"NumJobStarts\": 1") ",\n" JOB(
                        7, 2,
                        "\"JobStatus\": 6,\n  \"NumJobStarts\": 1") ",\n" JOB(8, 0,
                                                                              "\"JobStatus\": 7,\n "
                                                                              " \"NumJobStarts\": "
                                                                              "1") ",\n" JOB(8, 1,
                                                                                             "\"Job"
                                                                                             "Statu"
                                                                                             "s\": "
                                                                                             "4,\n "
                                                                                             " \"Ex"
                                                                                             "itByS"
                                                                                             "ignal"
                                                                                             "\": "
                                                                                             "false"
                                                                                             ",\n  "
                                                                                             "\"Exi"
                                                                                             "tCode"
                                                                                             "\": "
                                                                                             "0") ",\n" JOB(8,
                                                                                                            2,
                                                                                                            "\"JobStatus\": 9") "]\n",
                "7.0 d-1 0 ()\n7.1 d-1 1 ()\n7.2 d-1 1 ()\n8.0 d-1 1 ()\n8.1 d-1 2 ()\n");
        assert_read("[\n{\n  \"ClusterId\": 9,\n  \"DroverCount\": 1,\n  \"DroverName\": \"d-2\",\n"
                    "  \"JobStatus\": 1,\n  \"ProcId\": 0\n}\n]\n",
                    "9 d-2 0 ()\n");
        assert_read("[\n]\n", "");
        assert_read("", "");
}

/* Its place was lost, and it waits for another; somebody removed it; what the accounting says. */
static void ends(void **state)
{
        (void)state;
        assert_read("[\n" JOB(7, 0, "\"JobStatus\": 1,\n  \"NumJobStarts\": 1") "]\n",
                    "7.0 d-1 6 () stays\n");
        assert_read("[\n" JOB(7, 0,
                              "\"JobStatus\": 3,\n  \"RemoveReason\": \"via condor_rm (by user alice)\"") "]",
                    "7.0 d-1 3 (via condor_rm (by user alice))\n");
        assert_read(
                "[\n" JOB(
                        7, 0,
                        "\"JobStatus\": 4,\n  \"ExitBySignal\": true,\n  \"ExitSignal\": 9") ",\n" JOB(7, 1,
                                                                                                       "\"Job"
                                                                                                       "Statu"
                                                                                                       "s\": "
                                                                                                       "4,\n "
                                                                                                       " \"Ex"
                                                                                                       "itByS"
                                                                                                       "ignal"
                                                                                                       "\": "
                                                                                                       "false"
                                                                                                       ",\n  "
                                                                                                       "\"Exi"
                                                                                                       "tCode"
                                                                                                       "\": "
                                                                                                       "74") "]",
                "7.0 d-1 2 (signal 9)\n7.1 d-1 2 (status 74)\n");
        assert_read("[\n" JOB(7, 0, "\"JobStatus\": 4,\n  \"ExitCode\": 0,\n  \"NumJobStarts\": 2") "]",
                    "7.0 d-1 6 ()\n");
}

static void holds(void **state)
{
        (void)state;
        assert_read(
                "[\n" JOB(
                        7, 0,
                        "\"HoldReason\": \"via condor_hold (by user alice)\",\n  \"HoldReasonCode\": 1,\n"
                        "  \"JobStatus\": 5,\n  \"NumJobStarts\": 0") ",\n" JOB(7, 1,
                                                                                "\"HoldReason\": \"via "
                                                                                "condor_hold (by user "
                                                                                "alice)\",\n"
                                                                                "  \"HoldReasonCode\": "
                                                                                "1,\n  \"JobStatus\": "
                                                                                "5,\n  \"NumJobStarts\": "
                                                                                "1") ",\n" JOB(7, 2,
                                                                                               "\"HoldRea"
                                                                                               "son\": "
                                                                                               "\"Error "
                                                                                               "from "
                                                                                               "slot1@n1:"
                                                                                               " Failed "
                                                                                               "to "
                                                                                               "execute "
                                                                                               "'\\/x': "
                                                                                               "(errno=2:"
                                                                                               " "
                                                                                               "'No such "
                                                                                               "file or "
                                                                                               "directory"
                                                                                               "')\",\n  "
                                                                                               "\"HoldRea"
                                                                                               "sonCode\""
                                                                                               ": 6,\n"
                                                                                               "  "
                                                                                               "\"HoldRea"
                                                                                               "sonSubCod"
                                                                                               "e\": "
                                                                                               "2,\n  "
                                                                                               "\"JobStat"
                                                                                               "us\": 5") "]"
                                                                                                          "\n",
                "7.0 d-1 0 (via condor_hold (by user alice))\n"
                "7.1 d-1 3 (via condor_hold (by user alice)) stays\n"
                "7.2 d-1 7 (Error from slot1@n1: Failed to execute '/x': (errno=2: 'No such file or "
                "directory')) stays\n");
        assert_read(
                "[\n" JOB(
                        7, 0,
                        "\"HoldReason\": \"over memory\",\n  \"HoldReasonCode\": 34,\n"
                        "  \"HoldReasonSubCode\": 0,\n  \"JobStatus\": 5,\n  \"NumJobStarts\": 1") ",\n" JOB(7,
                                                                                                             1,
                                                                                                             "\"HoldReason\": \"over disk\",\n  \"HoldReasonCode\": 34,\n"
                                                                                                             "  \"HoldReasonSubCode\": 104,\n  \"JobStatus\": 5") ",\n" JOB(7,
                                                                                                                                                                            2,
                                                                                                                                                                            "\"HoldReason\": \"too long\",\n  \"HoldReasonCode\": 47,\n"
                                                                                                                                                                            "  \"JobStatus\": 5") "]\n",
                "7.0 d-1 5 (over memory) stays\n7.1 d-1 7 (over disk) stays\n7.2 d-1 4 (too long) stays\n");
}

/* One job's odd bytes do not hide the others; half an answer is none. */
static void odd_answers(void **state)
{
        (void)state;
        assert_read(
                "[\n" JOB(
                        7, 0,
                        "\"HoldReason\": \"a\xff\\u0000b\",\n  \"HoldReasonCode\": 13,\n"
                        "  \"JobStatus\": 5") ",\n" JOB(7, 1,
                                                        "\"JobStatus\": \"\\/Expr(undefined)\\/\"") ",\n\"x\""
                                                                                                    ", 7, "
                                                                                                    "null,"
                                                                                                    "\n" JOB(
                                                                                                            7,
                                                                                                            2,
                                                                                                            "\"JobStatus\": 2") "]\n",
                "7.0 d-1 7 (a?) stays\n7.2 d-1 1 ()\n");
        static const char *const halves[] = {
                "[\n" JOB(7, 0, "\"JobStatus\": 2") ",\n{\n  \"Clus", "{}",
                "-- Failed to fetch ads from: <10.0.0.1:9618?addrs=10.0.0.1-9618> : head\n"};
        for (size_t i = 0; i < sizeof(halves) / sizeof(*halves); i++) {
                MEM_CLEANUP char *copy = mem_dupz(halves[i]);
                BUF_CLEANUP struct buf got = {0};
                assert_false(batch_htcondor.is_answer(str_of(copy)));
                batch_htcondor.status_read(str_of(copy), write_line, &got);
                assert_int_equal(got.n, 0);
        }
}

static void submissions(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf native = {0};
        assert_true(batch_htcondor.submitted(STR("4711.0 - 4711.99\n"), &native));
        assert_string_equal(buf_z(&native), "4711");
        assert_false(batch_htcondor.submitted(STR("Submitting job(s).\n"), &native));
        assert_false(batch_htcondor.submitted(STR("1 job(s) submitted to cluster 7.\n"), &native));
        assert_false(batch_htcondor.submitted(STR(""), &native));
        buf_reset(&native);
        batch_htcondor.native_of("4711", 99, &native);
        assert_string_equal(buf_z(&native), "4711.99");
}

static void refusals(void **state)
{
        (void)state;
        static const char *const good[] = {
                "\nERROR: Parse error in expression: \n\tRequirements = (Memory >)\n",
                "\nERROR: Failed to commit job submission into the queue.\nERROR: This pool takes no such "
                "jobs.\n",
                "\nERROR: Failed to create proc\nNumber of submitted jobs would exceed "
                "MAX_JOBS_PER_SUBMISSION\n",
                "condor_submit: -:19: expected an expression\n"};
        static const char *const unsure[] = {
                "\nERROR: Failed to connect to local queue manager\nCEDAR:6001:Failed to connect to "
                "<10.0.0.1:9618>\n",
                "\nERROR: Can't find address of local schedd\n",
                "\nERROR: Failed to commit job submission into the queue.\n",
                "\nERROR: Failed to create cluster\nNumber of submitted jobs would exceed "
                "MAX_JOBS_SUBMITTED\n",
                "\nERROR: Failed to create proc\nNumber of submitted jobs would exceed MAX_JOBS_PER_OWNER\n",
                "condor_submit: no Drover server answers at /x/api.sock: start one with `drover up`\n",
                ""};
        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
                assert_true(batch_htcondor.refused(1, str_of(good[i])));
        for (size_t i = 0; i < sizeof(unsure) / sizeof(*unsure); i++)
                assert_false(batch_htcondor.refused(1, str_of(unsure[i])));
        assert_true(batch_htcondor.refused_array(str_of(good[2])));
        assert_false(batch_htcondor.refused_array(str_of(good[1])));
}

static void slots(void **state)
{
        (void)state;
        struct run_capacity c = {0};
        batch_htcondor.capacity_read(
                &none,
                STR("[\n"
                    "{\n  \"Cpus\": 6,\n  \"Machine\": \"n1\",\n  \"Memory\": 12000,\n"
                    "  \"SlotType\": \"Partitionable\",\n  \"State\": \"Unclaimed\",\n"
                    "  \"TotalSlotCpus\": 8,\n  \"TotalSlotMemory\": 16000\n}\n,\n"
                    "{\n  \"Cpus\": 2,\n  \"Machine\": \"n1\",\n  \"Memory\": 4000,\n"
                    "  \"SlotType\": \"Dynamic\",\n  \"State\": \"Claimed\",\n  \"TotalSlotCpus\": 2,\n"
                    "  \"TotalSlotMemory\": 4000\n}\n,\n"
                    "{\n  \"Cpus\": 1,\n  \"Machine\": \"n2\",\n  \"Memory\": 2000,\n"
                    "  \"SlotType\": \"Static\",\n  \"State\": \"Claimed\"\n}\n,\n"
                    "{\n  \"Cpus\": 1,\n  \"Machine\": \"n2\",\n  \"Memory\": 2000,\n"
                    "  \"SlotType\": \"Static\",\n  \"State\": \"Unclaimed\"\n}\n,\n"
                    "{\n  \"Cpus\": 1,\n  \"Machine\": \"n3\",\n  \"Memory\": 2000,\n"
                    "  \"SlotType\": \"Static\",\n  \"State\": \"Owner\"\n}\n,\n"
                    "{\n  \"Cpus\": -4,\n  \"Memory\": \"many\",\n  \"State\": \"Unclaimed\"\n}\n]\n"),
                &c);
        assert_int_equal(c.nodes, 3);
        assert_int_equal(c.cpus_milli, 10000);
        assert_int_equal(c.idle_cpus_milli, 7000);
        assert_int_equal(c.node_cpus_milli, 8000);
        assert_int_equal(c.memory_bytes >> 20, 20000);
        assert_int_equal(c.idle_memory_bytes >> 20, 14000);
        assert_int_equal(c.node_memory_bytes >> 20, 16000);
}

/* ---- what is asked */

static struct run_spec spec_of(const struct run_word *words, size_t count)
{
        return (struct run_spec){.sandbox = "/box",
                                 .cpus_milli = 1500,
                                 .memory_bytes = (100 << 20) + 1,
                                 .gpus = 2,
                                 .walltime_ms = 61000,
                                 .words = words,
                                 .word_count = count};
}

static void a_submit_file(void **state)
{
        (void)state;
        struct run_word set[] = {{"requirements", "OpSysMajorVer == 9"},
                                 {"rank", "Mips"},
                                 {"schedd", "head"},
                                 {"+ProjectName", "\"grid\""}},
                        words[] = {{"HtcondorRequirements", "HasX || Name == \")\""},
                                   {"HtcondorRank", "KFlops"},
                                   {"BatchProject", "physics.x"},
                                   {"BatchQueue", "long"}};
        struct batch_settings s = {set, 4};
        struct batch_call c = {.settings = &s};
        struct run_spec spec = spec_of(words, 4);
        BUF_CLEANUP struct buf head = {0}, line = {0};
        struct err err = {""};
        assert_int_equal(batch_htcondor.check(&s, &err), 0);
        assert_int_equal(batch_htcondor.resources(&s, &spec, &head, &err), 0);
        buf_addz(&head, "# this submission:\n");
        batch_htcondor.submit(&c, &(struct batch_sending){"d-1", "/a$b/d-1.sh", buf_z(&head), 3});
        for (int i = 0; i < c.argv.n; i++)
                buf_printf(&line, "%s ", c.argv.v[i]);
        assert_string_equal(buf_z(&line), "condor_submit -terse -name head - ");
        static const char *const lines[] = {
                "\nexecutable = /a$(DOLLAR)b/d-1.sh\n",
                "\noutput = /a$(DOLLAR)b/d-1.$(Process).log\n",
                "\nshould_transfer_files = NO\n",
                "\nenvironment = \"DROVER_TASK=$(Process)\"\n",
                "\nbatch_name = d-1\n+DroverName = \"d-1\"\n+DroverCount = 3\n",
                "\nrequest_cpus = 2\nrequest_memory = 101\nrequest_gpus = 2\nallowed_execute_duration = 121\n"
                "requirements = (OpSysMajorVer == 9) && (HasX || Name == \")\")\nrank = KFlops\n"
                "accounting_group = physics.x\n+BatchQueue = \"long\"\n+ProjectName = \"grid\"\nqueue 3\n"};
        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
                if (!strstr(buf_z(&c.input), lines[i]))
                        fail_msg("%s is not in %s", lines[i], buf_z(&c.input));
        args_deinit(&c.argv);
        buf_deinit(&c.input);
}

/* A job's word is one expression, whatever it tries. */
static void odd_words(void **state)
{
        (void)state;
        static const char *const odd[] = {
                "true) || (true", "true\nqueue 1000", "$ENV(HOME)", "a \\", "(", "\"", "[}", "", "x)"};
        struct err err = {""};
        BUF_CLEANUP struct buf head = {0};
        for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
                struct run_word words[] = {{"HtcondorRequirements", odd[i]}},
                                set[] = {{"requirements", odd[i]}}, own[] = {{"+Project", odd[i]}};
                struct run_spec spec = spec_of(words, 1);
                int r = batch_htcondor.resources(&none, &spec, &head, &err);
                assert_int_equal(r, *odd[i] ? -EINVAL : 0); /* an empty word is none */
                assert_int_equal(batch_htcondor.check(&(struct batch_settings){set, 1}, &err), -EINVAL);
                assert_int_equal(batch_htcondor.check(&(struct batch_settings){own, 1}, &err), -EINVAL);
        }
        struct run_word bad[] = {{"BatchProject", "a b"}}, domain[] = {{"filesystem_domain", "every"}};
        struct run_spec spec = spec_of(bad, 1);
        assert_int_equal(batch_htcondor.resources(&none, &spec, &head, &err), -EINVAL);
        assert_int_equal(batch_htcondor.check(&(struct batch_settings){domain, 1}, &err), -EINVAL);
}

static void assert_act(enum batch_verb verb, const char *want)
{
        struct batch_call c = {.settings = &none};
        BUF_CLEANUP struct buf line = {0};
        batch_htcondor.act(&c, verb, STR("7.1 9"));
        for (int i = 0; i < c.argv.n; i++)
                buf_printf(&line, "%s|", c.argv.v[i]);
        assert_string_equal(buf_z(&line), want);
        args_deinit(&c.argv);
}

static void acts(void **state)
{
        (void)state;
        assert_act(BATCH_END, "condor_rm|7.1|9|");
        assert_act(BATCH_STOP, "condor_suspend|7.1|9|");
        assert_act(BATCH_CONTINUE, "condor_continue|7.1|9|");
        assert_act(BATCH_RELEASE, "condor_release|7.1|9|");
        assert_act(BATCH_HOLD,
                   "condor_hold|-constraint|JobStatus == 1 && (stringListMember(string(ClusterId), "
                   "\"9\") || stringListMember(strcat(ClusterId, \".\", ProcId), \"7.1\"))|");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(states),      cmocka_unit_test(ends),          cmocka_unit_test(holds),
                cmocka_unit_test(odd_answers), cmocka_unit_test(submissions),   cmocka_unit_test(refusals),
                cmocka_unit_test(slots),       cmocka_unit_test(a_submit_file), cmocka_unit_test(odd_words),
                cmocka_unit_test(acts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
