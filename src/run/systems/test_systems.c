/* Recorded output of batch systems is read: Slurm 22.05, Grid Engine 8.1.9; PBS as its manuals show it, and
 * recorded in test_pbs.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "run/batch/batch.h"
#include "run/systems/recorded.h"

static struct run_spec spec_of(char *const *argv, char *const *envp)
{
        return (struct run_spec){.id = {7, 42, 3, 0, 0},
                                 .job = "7.42",
                                 .sandbox = "/box",
                                 .path = argv[0],
                                 .argv = argv,
                                 .envp = envp,
                                 .cpus_milli = 1500};
}

/* ---- tasks over several nodes */

static void assert_asks(const struct batch_system *system, const struct batch_settings *s,
                        const struct run_spec *spec, const char *line)
{
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        assert_int_equal(system->resources(s, spec, &out, &err), 0);
        if (!strstr(buf_z(&out), line))
                fail_msg("%s is not in:\n%s", line, buf_z(&out));
}

/* Three nodes with two tasks of two processors each; memory and GPUs are divided by the nodes. */
static void tasks_may_have_several_nodes(void **state)
{
        (void)state;
        struct run_word words[] = {{"NodeCount", "3"}, {"TasksPerNode", "2"}}, torque = {"form", "torque"},
                        spread = {"nodes_environment", "mpi"};
        char *argv[] = {(char *)"true", NULL};
        struct run_spec spec = spec_of(argv, NULL);
        struct batch_settings none = {NULL, 0};
        struct err err = {""};
        BUF_CLEANUP struct buf out = {0};
        spec.cpus_milli = 12000;
        spec.memory_bytes = 300 << 20;
        spec.gpus = 3;
        spec.words = words;
        spec.word_count = 2;
        assert_asks(&batch_slurm, &none, &spec,
                    "#SBATCH --nodes=3\n#SBATCH --ntasks=6\n#SBATCH --ntasks-per-node=2\n");
        assert_asks(&batch_slurm, &none, &spec,
                    "#SBATCH --cpus-per-task=2\n#SBATCH --mem=100M\n#SBATCH --gres=gpu:1\n");
        assert_asks(&batch_pbs, &none, &spec,
                    "#PBS -l select=3:ncpus=4:mpiprocs=2:ngpus=1:mem=100mb\n#PBS -l place=scatter\n");
        assert_asks(&batch_pbs, &(struct batch_settings){&torque, 1}, &spec,
                    "#PBS -l nodes=3:ppn=4:gpus=1,mem=300mb\n");
        assert_asks(&batch_gridengine, &(struct batch_settings){&spread, 1}, &spec, "#$ -pe mpi 12\n");
        assert_int_equal(batch_gridengine.resources(&none, &spec, &out, &err), -EINVAL);
        assert_non_null(strstr(err.text, "nodes_environment"));
        words[0].value = "-4"; /* no number that any system could give */
        assert_asks(&batch_slurm, &none, &spec, "#SBATCH --nodes=1\n");
}

/* ---- Slurm */

/* A reservation that an agent has made is used by jobs that the server lets into it. */
static void slurm_reservations(void **state)
{
        struct run_word words[] = {{"SlurmReservation", "physics"}};
        char *argv[] = {(char *)"true", NULL};
        struct run_spec spec = spec_of(argv, NULL);
        struct batch_settings none = {NULL, 0};
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        (void)state;
        spec.words = words;
        spec.word_count = 1;
        assert_asks(&batch_slurm, &none, &spec, "#SBATCH --reservation=physics\n");
        words[0].value = "drover-0123456789ab-r5-1796000000";
        assert_int_equal(batch_slurm.resources(&none, &spec, &out, &err), -EINVAL);
        assert_non_null(strstr(err.text, "is a reservation of Drover's"));
        words[0].value = "physics,drover-0123456789ab-r5-1796000000";
        assert_int_equal(batch_slurm.resources(&none, &spec, &out, &err), -EINVAL);
        spec.word_count = 0;
        spec.reservation = "drover-0123456789ab-r5-1796000000";
        assert_asks(&batch_slurm, &none, &spec, "#SBATCH --reservation=drover-0123456789ab-r5-1796000000\n");
}

static void slurm_lines(void **state)
{
        (void)state;
        assert_read(batch_slurm.status_read,
                    "17|N/"
                    "A|PENDING|drover-1-2|Resources|me\n17|3|RUNNING|a.sh|None|me\n"
                    "5|0|FAILED|a.sh|BadConstraints|me\n"
                    "5|0|FAILED|a.sh|NonZeroExitCode|you\n9|N/A|TIMEOUT|n|TimeLimit|me\n"
                    "\n17\na|b\n17|N/A|DREAMING|n   |None|me\n1|2|3|4\n1|2|3|4|5\n"
                    "17|N/A|CANCELLED|  |None|me\n17|N/A|CANCELLED||None|me\n17|CANCELLED|n\n",
                    "17 drover-1-2 0 (Resources) me\n17_3 a.sh 1 (None) me\n5_0 a.sh 7 (BadConstraints) me\n"
                    "5_0 a.sh 2 (NonZeroExitCode) you\n9 n 4 (TimeLimit) me\n17 n 1 (None) me\n");
}

/* sacct prints thirty characters of a name with a newline, too few to reach the column of the state. */
static void slurm_past_lines(void **state)
{
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        buf_printf(&out, "%-40s %-30s %-30s\n%-40s %-30s %-30s\n", "17_3", "CANCELLED by 1000", "n", "17",
                   "OUT_OF_MEMORY", "n");
        buf_printf(&out, "%-40s %-30s %-30s\n%-40s %-30s %-30s\n", "19", "COMPLETED",
                   "x\n18|FAILED|drover-1-2", "19", "COMPLETED", "x\n18 FAILED n");
        buf_addz(&out, "17|FAILED|n\n\n17\n");
        assert_read(batch_slurm.past_read, buf_z(&out),
                    "17_3 n 3 (by 1000)\n17 n 5 ()\n19 x 2 ()\n19 x 2 ()\n");
}

static void slurm_answers(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf native = {0};
        assert_true(batch_slurm.submitted(STR("sbatch: a site's greeting\n4711;alpha\n"), &native));
        assert_string_equal(buf_z(&native), "4711");
        assert_false(batch_slurm.submitted(STR("Submitted\n"), &native));
        assert_false(batch_slurm.submitted(STR(""), &native));
        assert_true(batch_slurm.refused(
                1, STR("sbatch: error: Batch job submission failed: Invalid partition name "
                       "specified\n")));
        assert_false(batch_slurm.refused(
                1, STR("sbatch: error: Batch job submission failed: Unable to contact slurm "
                       "controller (connect failure)\n")));
        assert_false(
                batch_slurm.refused(1, STR("sbatch: error: Batch job submission failed: Socket timed out on "
                                           "send/recv operation\n")));
        assert_true(batch_slurm.refused_array(STR("error: Invalid job array specification")));
#define POLICY                                                                                               \
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, " \
        "user's size and/or time limits)\n"
        assert_true(batch_slurm.full(STR("sbatch: error: QOSMaxSubmitJobPerUserLimit\n" POLICY)));
        assert_true(batch_slurm.full(STR("sbatch: error: AssocGrpSubmitJobsLimit\n" POLICY)));
        assert_true(batch_slurm.full(STR(POLICY))); /* an old one, which does not say */
        assert_false(batch_slurm.full(STR("sbatch: error: QOSMaxWallDurationPerJobLimit\n" POLICY)));
        assert_true(batch_slurm.refused(1, STR("sbatch: error: QOSMaxWallDurationPerJobLimit\n" POLICY)));
        assert_false(batch_slurm.full(STR("sbatch: error: Batch job submission failed: Invalid qos\n")));
        assert_false(batch_slurm.past_away(STR("Slurm accounting storage is disabled\n")));
        assert_true(batch_slurm.past_away(
                STR("sacct: error: Problem talking to the database: Connection refused\n")));
}

static void slurm_quotes(void **state)
{
        (void)state;
        uint64_t ms = 0;
        setenv("TZ", "UTC0", 1);
        assert_true(batch_slurm.when_said(
                STR(""),
                STR("sbatch: a greeting\nsbatch: Job 17 to start at 2026-11-21T19:40:11 "
                    "using 1 processors on nodes a1 in partition main\n"),
                &ms));
        assert_int_equal(ms, 1795290011000u);
        assert_false(batch_slurm.when_said(STR(""), STR("sbatch: Job 17 to start at soon"), &ms));
        assert_false(batch_slurm.when_said(STR(""), STR(""), &ms));
        assert_true(batch_slurm.refused(
                1, STR("allocation failure: Requested node configuration is not available\n"
                       "sbatch: error: nothing\n")));
}

static void slurm_asks_for_resources(void **state)
{
        (void)state;
        struct run_word set[] = {{"partition", "main"}, {"account", "a1"}},
                        words[] = {{"slurmpartition", "short"},
                                   {"SlurmQOS", "high"},
                                   {"JobBatchName", "x y"}},
                        odd[] = {{"SlurmComment", "a\n#SBATCH --uid=0"}};
        struct batch_settings s = {set, 2};
        char *argv[] = {(char *)"true", NULL};
        struct run_spec spec = spec_of(argv, NULL);
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};
        spec.memory_bytes = (100 << 20) + 1;
        spec.walltime_ms = 61000;
        spec.gpus = 2;
        spec.words = words;
        spec.word_count = 3;
        assert_int_equal(batch_slurm.resources(&s, &spec, &out, &err), 0);
        static const char *const lines[] = {"--cpus-per-task=2\n", "--mem=101M\n",        "--time=2\n",
                                            "--gres=gpu:2\n",      "--partition=short\n", "--account=a1\n",
                                            "--qos=high\n"};
        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
                assert_non_null(strstr(buf_z(&out), lines[i]));
        assert_null(strstr(buf_z(&out), "x y"));
        spec.words = odd;
        spec.word_count = 1;
        buf_reset(&out);
        assert_int_equal(batch_slurm.resources(&s, &spec, &out, &err), -EINVAL);
        assert_non_null(strstr(err.text, "cannot be the comment"));
}

/* ---- Grid Engine */

static const char grid_jobs[] =
        "<?xml version='1.0'?>\n<job_info  xmlns:xsd=\"http://example.org/qstat.xsd\">\n  <queue_info>\n"
        "    <job_list state=\"running\">\n      <JB_job_number>1</JB_job_number>\n"
        "      <JAT_prio>0.75000</JAT_prio>\n      <JB_name>drover-abc-1</JB_name>\n"
        "      <JB_owner>root</JB_owner>\n      <state>dr</state>\n"
        "      <queue_name>all.q@localhost</queue_name>\n      <slots>1</slots>\n      <tasks>3</tasks>\n"
        "    </job_list>\n  </queue_info>\n  <job_info>\n    <job_list state=\"pending\">\n"
        "      <JB_job_number>4</JB_job_number>\n      <JB_name>a &lt;&amp;&gt; b</JB_name>\n"
        "      <state>hqw</state>\n      <queue_name></queue_name>\n      <slots>1</slots>\n    </job_list>\n"
        "    <job_list state=\"pending\">\n      <JB_job_number>10</JB_job_number>\n"
        "      <JB_name>bad</JB_name>\n      <state>Eqw</state>\n    </job_list>\n  "
        "</job_info>\n</job_info>\n";

static void grid_lines(void **state)
{
        enum batch_phase phase = BATCH_UNFIT;

        (void)state;
        assert_read(batch_gridengine.status_read, grid_jobs,
                    "1.3 drover-abc-1 1 () root\n4 a <&> b 0 ()\n10 bad 7 ()\n");
        assert_read(batch_gridengine.status_read, "<job_list><JB_job_number>1</JB_job_number></job_list><x",
                    "");
        assert_read(batch_gridengine.status_read, "<>< ></job_list><state>", "");
        assert_read(
                batch_gridengine.past_read,
                "==============================================================\nqname        all.q          "
                "     \n"
                "jobname      drover-abc-1        \njobnumber    1                   \n"
                "taskid       2                   \nfailed       100 : assumedly after job\n"
                "exit_status  137                  (Killed)\n"
                "==============================================================\njobname      one\n"
                "jobnumber    17\ntaskid       undefined\nfailed       0    \nexit_status  3\n"
                "====\njobname told\njobnumber 20\ntaskid undefined\nfailed 0\nexit_status 143 (Terminated)\n"
                "====\njobname x\njobnumber 18\ntaskid undefined\nfailed 37 : qmaster enforced h_rt limit\n"
                "====\njobname x\njobnumber 19\ntaskid undefined\nfailed 21 : in recognizing job\n",
                "1.2 drover-abc-1 3 ()\n17 one 2 ()\n20 told 3 ()\n18 x 4 ()\n19 x 6 (in recognizing job)\n");
        assert_true(str_eqz(
                batch_gridengine.explained(
                        STR("job_type:                   NONE\nerror reason          1:      11/21/2026 "
                            "19:46:28 [0:15093]: error: can't chdir to /none: No such file\nx\n"),
                        &phase),
                "error: can't chdir to /none: No such file"));
        assert_int_equal(batch_gridengine.explained(STR("nothing\n"), &phase).n, 0);
}

static void grid_answers(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf native = {0};
        assert_true(batch_gridengine.submitted(STR("a greeting\n17.1-3:1\n"), &native));
        assert_string_equal(buf_z(&native), "17");
        buf_reset(&native);
        assert_true(batch_gridengine.submitted(STR("18\n"), &native));
        assert_string_equal(buf_z(&native), "18");
        assert_false(batch_gridengine.submitted(STR("Your job 18 has been submitted\n"), &native));
        assert_true(
                batch_gridengine.refused(1, STR("Unable to run job: unknown resource \"foo\"\nExiting.\n")));
        assert_false(batch_gridengine.refused(
                1, STR("error: commlib error: got select error (Connection refused)\n"
                       "Unable to run job: unable to send message to qmaster\n")));
        assert_false(batch_gridengine.refused(
                1, STR("Unable to run job: job rejected: only 5 jobs are allowed per user "
                       "(current job count: 5)\n")));
        assert_true(batch_gridengine.full(STR("Unable to run job: job rejected: only 5 jobs are allowed per "
                                              "user (current job count: 5)\n")));
}

static void grid_asks_for_resources(void **state)
{
        (void)state;
        struct run_word set[] = {{"queue", "all.q"},
                                 {"parallel_environment", "smp"},
                                 {"memory_resource", "mem_free"}},
                        words[] = {{"GridEngineProject", "physics"},
                                   {"GridEngineResources", "scratch=1,arch=lx-amd64"}},
                        odd[] = {{"BatchQueue", "a b"}};
        struct batch_settings s = {set, 3}, none = {NULL, 0};
        char *argv[] = {(char *)"true", NULL};
        struct run_spec spec = spec_of(argv, NULL);
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};
        spec.memory_bytes = (100 << 20) + 1;
        spec.walltime_ms = 61000;
        spec.gpus = 2;
        spec.words = words;
        spec.word_count = 2;
        assert_int_equal(batch_gridengine.resources(&s, &spec, &out, &err), 0);
        static const char *const lines[] = {"#$ -pe smp 2\n",
                                            "#$ -l mem_free=51M\n",
                                            "#$ -l h_rt=91\n",
                                            "#$ -l gpu=1\n",
                                            "#$ -q all.q\n",
                                            "#$ -P physics\n",
                                            "#$ -l scratch=1,arch=lx-amd64\n"};
        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
                assert_non_null(strstr(buf_z(&out), lines[i]));
        assert_int_equal(batch_gridengine.resources(&none, &spec, &out, &err), -EINVAL);
        assert_non_null(strstr(err.text, "parallel_environment"));
        struct run_word of_jobs[] = {{"parallel_environment", "smp"},
                                     {"gpu_per", "job"},
                                     {"gpu_resource", "ngpus"}},
                        odd_per = {"gpu_per", "host"}, odd_name = {"gpu_resource", "gpu=1,slots"};
        buf_reset(&out);
        assert_int_equal(batch_gridengine.resources(&(struct batch_settings){of_jobs, 3}, &spec, &out, &err),
                         0);
        assert_non_null(strstr(buf_z(&out), "#$ -l ngpus=2\n"));
        assert_int_equal(batch_gridengine.check(&(struct batch_settings){of_jobs, 3}, &err), 0);
        assert_int_equal(batch_gridengine.check(&(struct batch_settings){&odd_per, 1}, &err), -EINVAL);
        assert_int_equal(batch_gridengine.check(&(struct batch_settings){&odd_name, 1}, &err), -EINVAL);
        spec.words = odd;
        spec.word_count = 1;
        assert_int_equal(batch_gridengine.resources(&s, &spec, &out, &err), -EINVAL);
}

static void sizes(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                uint64_t bytes;
        } good[] = {{"23.5G", 25232932864u},
                    {"100mb", 104857600},
                    {"2048kb", 2097152},
                    {"7", 7168},
                    {"7b", 7},
                    {"0", 0}};
        static const char *const bad[] = {"", "G", "-1", "1x", "1gbb", "1e30g", "inf"};
        uint64_t n;
        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
                assert_true(batch_size(str_of(good[i].text), 1024, &n));
                assert_int_equal(n, good[i].bytes);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_false(batch_size(str_of(bad[i]), 1, &n));
}

/* ---- exec */

static void exec_questions(void **state)
{
        (void)state;
        struct run_word set[] = {{"program", "/usr/bin/x"}, {"words", "LsfApp"}, {"mine", "it's \"so\""}},
                        words[] = {{"BatchQueue", "long"}, {"LsfApp", "a1"}, {"SlurmQOS", "no"}},
                        odd[] = {{"BatchQueue", "a b"}};
        struct batch_settings s = {set, 3};
        char *argv[] = {(char *)"true", NULL};
        struct run_spec spec = spec_of(argv, NULL);
        BUF_CLEANUP struct buf head = {0};
        struct batch_call c = {.settings = &s};
        struct err err = {""};
        spec.memory_bytes = 1000;
        spec.walltime_ms = 61001;
        spec.words = words;
        spec.word_count = 3;
        assert_int_equal(batch_exec.resources(&s, &spec, &head, &err), 0);
        assert_string_equal(buf_z(&head),
                            "# drover: {\"cpus\":2,\"memory\":1000,\"gpus\":0,\"walltime\":62,\"words\":"
                            "{\"batchqueue\":\"long\",\"lsfapp\":\"a1\"}}\n");
        batch_exec.submit(&c, &(struct batch_sending){"drover-1", "/a b/s.sh", buf_z(&head), 3});
        assert_string_equal(c.argv.v[0], "/usr/bin/x");
        assert_string_equal(c.argv.v[1], "submit");
        assert_string_equal(
                buf_z(&c.input),
                "{\"version\":1,\"op\":\"submit\",\"settings\":{\"program\":\"/usr/bin/"
                "x\",\"words\":\"LsfApp\","
                "\"mine\":\"it's \\\"so\\\"\"},\"name\":\"drover-1\",\"script\":\"/a b/s.sh\",\"count\":3,"
                "\"resources\":{\"cpus\":2,\"memory\":1000,\"gpus\":0,\"walltime\":62,\"words\":"
                "{\"batchqueue\":\"long\",\"lsfapp\":\"a1\"}}}\n");
        args_deinit(&c.argv);
        buf_reset(&c.input);
        batch_exec.act(&c, BATCH_END, STR("17 18[3]"));
        assert_non_null(strstr(buf_z(&c.input), "\"op\":\"kill\""));
        assert_non_null(strstr(buf_z(&c.input), "\"natives\":[\"17\",\"18[3]\"]}\n"));
        args_deinit(&c.argv);
        buf_deinit(&c.input);
        spec.words = odd;
        spec.word_count = 1;
        assert_int_equal(batch_exec.resources(&s, &spec, &head, &err), -EINVAL);
}

static void exec_answers(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf native = {0};
        uint64_t ms = 0;
        assert_true(batch_exec.submitted(STR("hello\n{\"native\": \"47.a\"}\n"), &native));
        assert_string_equal(buf_z(&native), "47.a");
        buf_reset(&native);
        assert_false(batch_exec.submitted(
                STR("{\"native\": \"4 7\"}\n{\"native\":\"4[1]\"}\n{\"native\":[1]}\n[1]\n{\n"), &native));
        assert_true(batch_exec.refused(1, STR("")) && !batch_exec.refused(75, STR("error")));
        assert_read(batch_exec.status_read,
                    "{\"native\":\"17[3]\",\"name\":\"n\",\"state\":\"running\"}\n"
                    "{\"native\":18,\"state\":\"unfit\",\"reason\":\"it \\u00fc \\\"no\\\"\"}\n"
                    "{\"native\":\"19\",\"state\":\"dreaming\"}\n{\"state\":\"running\"}\nnothing\n{{{\n",
                    "17[3] n 1 ()\n18  7 (it \xc3\xbc \"no\")\n19  1 ()\n");
        assert_true(str_eqz(batch_whole(&batch_exec, STR("1.a[3]")), "1.a"));
        assert_true(str_eqz(batch_whole(&batch_slurm, STR("17_3")), "17"));
        assert_true(batch_exec.when_said(STR("{\"begins\": 1795290011}\n"), STR(""), &ms));
        assert_int_equal(ms, 1795290011000u);
        assert_false(batch_exec.when_said(STR("{}\n"), STR(""), &ms));
}

static void exec_settings(void **state)
{
        (void)state;
        struct run_word none[] = {{"verbs", "hold"}}, relative[] = {{"program", "x"}},
                        verb[] = {{"program", "/x"}, {"verbs", "hold fly"}},
                        array[] = {{"program", "/x"}, {"array_max", "5"}},
                        name[] = {{"program", "/x"}, {"index_variable", "A B"}},
                        good[] = {{"program", "/x"},
                                  {"verbs", "hold nudge"},
                                  {"array_max", "5"},
                                  {"index_variable", "LSB_JOBINDEX"}};
        struct err err = {""};
        assert_int_equal(batch_exec.check(&(struct batch_settings){none, 1}, &err), -EINVAL);
        assert_int_equal(batch_exec.check(&(struct batch_settings){relative, 1}, &err), -EINVAL);
        assert_int_equal(batch_exec.check(&(struct batch_settings){verb, 2}, &err), -EINVAL);
        assert_int_equal(batch_exec.check(&(struct batch_settings){array, 2}, &err), -EINVAL);
        assert_int_equal(batch_exec.check(&(struct batch_settings){name, 2}, &err), -EINVAL);
        assert_int_equal(batch_exec.check(&(struct batch_settings){good, 4}, &err), 0);
        assert_int_equal(batch_exec.verbs_of(&(struct batch_settings){good, 4}),
                         1u << BATCH_END | 1u << BATCH_HOLD | 1u << BATCH_NUDGE);
}

/* ---- PBS: as the manuals of Torque 6.1 (qstat -f, pbsnodes) and PBS Pro 2022 (the same) show it */

static void pbs_lines(void **state)
{
        (void)state;
        assert_read(
                batch_pbs.status_read,
                "Job Id: 4807.head.example.org\n    Job_Name = d1a2b0123456789\n    Job_Owner = "
                "me@head.example.org\n"
                "    resources_used.cput = 00:00:00\n    job_state = R\n    queue = batch\n"
                "    Variable_List = PBS_O_QUEUE=batch,PBS_O_HOME=/home/me,\n\tPBS_O_LANG=en,job_state = "
                "X\n\n"
                "Job Id: 4808[3].head\n    Job_Name = d1a2b0123456790-3\n    job_state = C\n    exit_status "
                "= 271\n\n"
                "Job Id: 4809[].head\n    Job_Name = d1a2b\n    job_state = B\n\n"
                "Job Id: 4810\n    Job_Name = x\n    job_state = H\n    comment = Not Running: no nodes\n\n"
                "Job Id: 4811.h\n    Job_Name = x\n    job_state = F\n    Exit_status = -3\n\n"
                "Job Id: 4812.h\n    Job_Name = x\n    job_state = F\n    Exit_status = 1\n\n"
                "Job Id: 4813[2].h\n    Job_Name = d1\n    Job_Owner = me@h\n    job_state = X\n    substate "
                "= 92\n"
                "    Exit_status = 0\n    array_id = 4813[].h\n    array_index = 2\n\n"
                "Job Id: 4813[3].h\n    Job_Name = d1\n    job_state = X\n    substate = 91\n\n"
                "Job Id: 4813[4].h\n    Job_Name = d1\n    job_state = Q\n    substate = 10\n\nJob Id:\n",
                "4807 d1a2b0123456789 1 () me\n4808[3] d1a2b0123456790 3 ()\n4810 x 0 (Not Running: no "
                "nodes)\n"
                "4811 x 6 ()\n4812 x 2 ()\n4813[2] d1 2 () me\n4813[3] d1 3 ()\n4813[4] d1 0 ()\n");
        assert_true(str_eqz(batch_whole(&batch_pbs, STR("4808[3]")), "4808"));
}

static void pbs_answers(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf native = {0};
        assert_true(batch_pbs.submitted(STR("hello\n4807[].head.example.org\n"), &native));
        assert_string_equal(buf_z(&native), "4807");
        buf_reset(&native);
        assert_true(batch_pbs.submitted(STR("17\n"), &native));
        assert_false(batch_pbs.submitted(STR("17 things\n"), &native) ||
                     batch_pbs.submitted(STR("\n"), &native));
        assert_true(
                batch_pbs.refused(171, STR("qsub: submit error (Unknown queue MSG=cannot locate queue)\n")));
        assert_true(batch_pbs.refused(188, STR("qsub: Job violates queue and/or server resource limits\n")));
        assert_false(batch_pbs.refused(
                111, STR("qsub: cannot connect to server head (errno=111) Connection refused\n")));
        assert_true(batch_pbs.full(STR("qsub: would exceed queue generic's per-user limit\n")));
        assert_true(batch_pbs.full(STR("qsub: Array job exceeds server or queue size limit\n")));
        assert_true(batch_pbs.full(
                STR("qsub: submit error (Maximum number of jobs already in queue for user MSG=total "
                    "number of current user's jobs exceeds the queue limit: user me@h, queue q)\n")));
        assert_false(batch_pbs.full(STR("qsub: Job exceeds queue resource limits\n")));
        assert_true(batch_pbs.refused(
                188, STR("qsub: submit error (Job exceeds queue resource limits MSG=cannot satisfy "
                         "queue max walltime requirement)\n")));
        assert_true(batch_pbs.refused_array(STR("qsub: cannot submit non-rerunable Array Job\n")));
}

static void pbs_asks_for_resources(void **state)
{
        (void)state;
        struct run_word pro[] = {{"form", "pro"}, {"queue", "workq"}}, torque[] = {{"form", "torque"}},
                        words[] = {{"PbsAccount", "physics"}}, odd[] = {{"PbsResources", "a b"}};
        char *argv[] = {(char *)"true", NULL};
        struct run_spec spec = spec_of(argv, NULL);
        BUF_CLEANUP struct buf a = {0}, b = {0};
        struct batch_call c = {.settings = &(struct batch_settings){pro, 2}};
        struct err err = {""};
        spec.memory_bytes = 100 << 20;
        spec.walltime_ms = 3600000;
        spec.gpus = 1;
        spec.words = words;
        spec.word_count = 1;
        assert_int_equal(batch_pbs.resources(c.settings, &spec, &a, &err), 0);
        assert_non_null(strstr(
                buf_z(&a),
                "#PBS -l select=1:ncpus=2:ngpus=1:mem=100mb\n#PBS -l walltime=01:01:00\n#PBS -q workq\n"
                "#PBS -A physics\n"));
        assert_int_equal(batch_pbs.resources(&(struct batch_settings){torque, 1}, &spec, &b, &err), 0);
        assert_non_null(strstr(buf_z(&b), "#PBS -l nodes=1:ppn=2:gpus=1,mem=100mb\n"));
        spec.words = odd;
        assert_int_equal(batch_pbs.resources(c.settings, &spec, &b, &err), -EINVAL);
        batch_pbs.submit(&c, &(struct batch_sending){"d1", "/s", "", 3});
        assert_string_equal(c.argv.v[2], "-J");
        assert_string_equal(c.argv.v[3], "1-3");
        args_deinit(&c.argv);
        buf_reset(&b); /* an array may be run again: PBS Pro takes no other */
        batch_pbs.naming("d1", "/l", 3, &b);
        assert_string_equal(buf_z(&b), "#PBS -N d1\n#PBS -r y\n#PBS -o /dev/null\n");
        buf_reset(&b);
        batch_pbs.naming("d1", "/l", 1, &b);
        assert_string_equal(buf_z(&b), "#PBS -N d1\n#PBS -r n\n#PBS -o /l.0.log\n");
        assert_int_equal(batch_pbs.check(&(struct batch_settings){NULL, 0}, &err), 0);
        torque[0].value = "tork";
        assert_int_equal(batch_pbs.check(&(struct batch_settings){torque, 1}, &err), -EINVAL);
        torque[0].value = "torque";
        assert_int_equal(batch_pbs.check(&(struct batch_settings){torque, 1}, &err), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tasks_may_have_several_nodes),
                cmocka_unit_test(slurm_lines),
                cmocka_unit_test(slurm_past_lines),
                cmocka_unit_test(slurm_reservations),
                cmocka_unit_test(slurm_answers),
                cmocka_unit_test(slurm_quotes),
                cmocka_unit_test(slurm_asks_for_resources),
                cmocka_unit_test(grid_lines),
                cmocka_unit_test(grid_answers),
                cmocka_unit_test(grid_asks_for_resources),
                cmocka_unit_test(exec_questions),
                cmocka_unit_test(exec_answers),
                cmocka_unit_test(exec_settings),
                cmocka_unit_test(pbs_lines),
                cmocka_unit_test(pbs_answers),
                cmocka_unit_test(pbs_asks_for_resources),
                cmocka_unit_test(sizes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
