#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/slurm/batch.h"
#include "cli/slurm/slurm.h"

/* The submit file of the options, without names, streams and the environment; an error's text behind "error:
 * ". */
static void write_all(struct buf *out, const char *const *options)
{
        WORDS_CLEANUP struct words w;
        struct cli cli = {.now_ms = 1767225600000};
        struct batch b = {.cli = &cli, .words = &w, .command = "job.sh", .name = "job"};
        struct err err = {""};
        size_t n = 0;

        while (options[n])
                n++;
        words_init(&w, &slurm_sbatch);
        if (words_read(&w, WORDS_CALL, n, options, &err) != 0 || batch_write(&b, out, &err) != 0) {
                buf_reset(out);
                buf_printf(out, "error: %s", err.text);
        }
}
#define WRITE(out, ...) write_all(out, (const char *const[]){__VA_ARGS__, NULL})

static void expect(const char *line, const char *const *options)
{
        BUF_CLEANUP struct buf out = {0};
        struct str rest, one;

        write_all(&out, options);
        rest = buf_view(&out);
        while (str_cut(&rest, '\n', &one))
                if (str_eqz(one, line))
                        return;
        fail_msg("%s is not in:\n%s", line, buf_z(&out));
}
#define EXPECT(line, ...) expect(line, (const char *const[]){__VA_ARGS__, NULL})

static void what_is_empty_or_has_no_use_leaves_nothing(void **state)
{
        static const struct {
                const char *options[3];
                const char *absent;
        } rows[] = {
                {{"--constraint="}, "requirements"},
                {{"--mail-user="}, "notify_user"},
                {{"--mail-user=%u@example.org"}, "notify_user"},
                {{"--mail-user=slack:@ann"}, "notify_user"},
                {{"-N", "2"}, "slurm_id"},
        };
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                buf_reset(&out);
                write_all(&out, rows[i].options);
                if (str_search(buf_view(&out), STR("error: ")) == 0 ||
                    str_search(buf_view(&out), str_of(rows[i].absent)) >= 0)
                        fail_msg("%s", buf_z(&out));
        }
        EXPECT("notify_user = ann@example.org", "--mail-user=ann@example.org");
        EXPECT("requirements = ((stringListIMember(\"a100\", TARGET.Features) =?= true || "
               "stringListIMember(\"h100\", TARGET.Features) =?= true))",
               "--constraint=[a100|h100]");
}

static void processors_are_those_of_all_tasks(void **state)
{
        (void)state;
        EXPECT("request_cpus = 1", "--hold");
        EXPECT("request_cpus = 12", "-n", "4", "-c", "3");
        EXPECT("request_cpus = 8", "--ntasks-per-node=8");
        EXPECT("request_cpus = 8", "--tasks=8", "-N", "1-1");
        EXPECT("request_cpus = 6", "-n2", "--mincpus=6");
        EXPECT("request_cpus = 16", "--gpus=2", "--cpus-per-gpu=8");
        EXPECT("+SlurmTasksPerJob = 4", "-n", "4", "-c", "3");
        EXPECT("request_nodes = 2", "-N", "2", "--ntasks-per-node=4", "-c", "3");
        EXPECT("tasks_per_node = 4", "-N", "2", "--ntasks-per-node=4", "-c", "3");
        EXPECT("request_cpus = 3", "-N", "2", "--ntasks-per-node=4", "-c", "3");
        EXPECT("+SlurmTasksPerJob = 8", "-N", "2", "--ntasks-per-node=4");
        EXPECT("tasks_per_node = 3", "-N", "2-4", "-n", "5");
}

static void memory_is_that_of_the_job(void **state)
{
        (void)state;
        EXPECT("request_memory = 500M", "--mem=500");
        EXPECT("request_memory = 4096M", "--mem=4G");
        EXPECT("request_memory = 4096M", "--mem=4gb");
        EXPECT("request_memory = 2M", "--mem=1025K");
        EXPECT("request_memory = 600M", "-n3", "--mem=9G", "--mem-per-cpu=200");
        EXPECT("request_memory = 2048M", "--gpus=2", "--mem-per-gpu=1G");
        EXPECT("request_disk = 10240M", "--tmp=10G");
        {
                BUF_CLEANUP struct buf out = {0};

                WRITE(&out, "--mem=0");
                assert_null(strstr(buf_z(&out), "request_memory"));
        }
}

static void gpus_and_other_resources(void **state)
{
        (void)state;
        EXPECT("request_gpus = 2", "--gres=gpu:2");
        EXPECT("request_gpus = 1", "--gres=gpu");
        EXPECT("request_gpus = 3", "--gres=gpu:a100:3,licence:2");
        EXPECT("request_licence = 2", "--gres=gpu:a100:3,licence:2");
        EXPECT("require_gpus = regexp(\"a100\", DeviceName, \"i\")", "-G", "a100:1");
        EXPECT("request_gpus = 8", "-n4", "--gpus-per-task=2");
        EXPECT("concurrency_limits = a:1, b:3", "-L", "a,b@db:3");
}

static void places_become_requirements(void **state)
{
        (void)state;
        EXPECT("requirements = (TARGET.QueueName =?= \"a\" || TARGET.QueueName =?= \"b\")", "-p", "a,b");
        EXPECT("requirements = (TARGET.AgentName =!= \"n1\" && TARGET.Machine =!= \"n1\" && TARGET.AgentName "
               "=!= \"n2\" && "
               "TARGET.Machine =!= \"n2\")",
               "-x", "n[1-2]");
        EXPECT("requirements = (stringListIMember(\"ib\", TARGET.Features) =?= true && "
               "(stringListIMember(\"amd\", TARGET.Features) =?= true || stringListIMember(\"intel\", "
               "TARGET.Features) "
               "=?= true))",
               "-C", "ib&(amd|intel)");
}

static void times_and_order(void **state)
{
        (void)state;
        EXPECT("allowed_execute_duration = 5400", "-t", "1:30:00");
        EXPECT("deferral_time = 1767229200", "--begin=now+1hour");
        EXPECT("+SlurmDeadline = 1767229200", "--deadline=now+1hour");
        EXPECT("hold = true", "-H");
        EXPECT("priority = -100", "--nice");
        EXPECT("priority = 7", "--nice=-7");
        EXPECT("accounting_group = physics", "-A", "physics");
        EXPECT("notification = Always", "--mail-type=END,FAIL");
        EXPECT("notification = Error", "--mail-type=FAIL,TIME_LIMIT_80");
        EXPECT("notification = Start", "--mail-type=BEGIN");
        EXPECT("notify_user = a@example.org", "--mail-user=a@example.org");
        EXPECT("max_materialize = 5", "-a", "1-100%5");
        EXPECT("slurm_task = 3 + 2 * $(Process)", "-a", "3-9:2");
}

static void what_cannot_be_meant_is_refused(void **state)
{
        static const char *const bad[] = {
                "--ntasks=0",
                "--ntasks=x",
                "--cpus-per-task=-1",
                "--nodes=0",
                "--nodes=x",
                "--mem=x",
                "--mem=5P",
                "--mem=",
                "--gres=gpu:x:y",
                "--gres=a/b:1",
                "--gpus=$(x):1",
                "--time=x",
                "--begin=never",
                "--nodelist=a,b",
                "--nodelist=n[",
                "--constraint=a*2",
                "--mail-type=SOON",
                "--licenses=a|b",
                "--licenses=:1",
                "--nice=x",
                "--priority=-1",
                "--array=5-1",
                "--ntasks=2000000",
                "--job-name= x",
                "--kill-on-invalid-dep=maybe",
                "--dependency=nonsense:1",
                "--dependency=afterok:x",
                "--dependency=afterok:1?afterok:2",
                "--dependency=afterok",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                BUF_CLEANUP struct buf out = {0};

                WRITE(&out, bad[i]);
                if (!str_starts(buf_view(&out), STR("error: ")) || out.n < 10)
                        fail_msg("%s: %s", bad[i], buf_z(&out));
        }
}

static void text_stays_text(void **state)
{
        (void)state;
        EXPECT("+SlurmComment = \"a \\\"b\\\" $(DOLLAR)(Cluster) $$(DOLLARDOLLAR)(x)\"",
               "--comment=a \"b\" $(Cluster) $$(x)");
        EXPECT("batch_name = $(DOLLAR)(x)", "-J", "$(x)");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_empty_or_has_no_use_leaves_nothing),
                cmocka_unit_test(processors_are_those_of_all_tasks),
                cmocka_unit_test(memory_is_that_of_the_job),
                cmocka_unit_test(gpus_and_other_resources),
                cmocka_unit_test(places_become_requirements),
                cmocka_unit_test(times_and_order),
                cmocka_unit_test(what_cannot_be_meant_is_refused),
                cmocka_unit_test(text_stays_text),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
