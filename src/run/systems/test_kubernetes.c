/* Answers of Kubernetes' API are read, and its requests are made. */
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

        batch_kubernetes.service->take(NULL, rows, values, &a->out, &a->errors);
}

/* Adds the lines that come of an answer. */
static void answered(struct answer *a, const char *json)
{
        struct json_skim skim;

        json_skim_init(&skim, batch_kubernetes.service->rows, on_row, a);
        assert_int_equal(json_skim_take(&skim, str_of(json)), 0);
        assert_true(json_skim_done(&skim));
        json_skim_deinit(&skim);
}

static void answer_deinit(struct answer *a)
{
        buf_deinit(&a->out);
        buf_deinit(&a->errors);
}

#define ITEMS(kind, items) "{\"kind\":\"" kind "List\",\"items\":[" items "]}"
#define JOB_ITEM(name, spec, status)                                                                         \
        "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "\"backoffLimit\":0},\"status\":{" status "}}"
#define POD_ITEM(job, status)                                                                                \
        "{\"metadata\":{\"name\":\"" job "-x\",\"labels\":{\"job-name\":\"" job "\"}},\"status\":{" status   \
        "}}"
#define ENDED(type, message)                                                                                 \
        "\"conditions\":[{\"type\":\"Suspended\",\"status\":\"False\"},{\"type\":\"" type                    \
        "\",\"status\":\"True\",\"message\":\"" message "\"}]"

static void states_come_of_jobs_pods_and_events(void **state)
{
        struct answer a = {{0}};

        (void)state;
        answered(
                &a,
                ITEMS("Job",
                      JOB_ITEM("done", "", ENDED("Complete", "")) "," JOB_ITEM("late", "", ENDED("Failed", "Job was active longer than specified deadline")) "," JOB_ITEM("big", "", ENDED("Failed", "limit")) "," JOB_ITEM(
                              "gone", "",
                              ENDED("Failed",
                                    "limit")) "," JOB_ITEM("runs", "",
                                                           "\"ready\":1") "," JOB_ITEM("waits", "",
                                                                                       "\"ready\":0") "," JOB_ITEM("pulls",
                                                                                                                   "",
                                                                                                                   "") "," JOB_ITEM("never",
                                                                                                                                    "",
                                                                                                                                    "") "," JOB_ITEM("held",
                                                                                                                                                     "\"suspend\":true,",
                                                                                                                                                     "") "," JOB_ITEM("small",
                                                                                                                                                                      "",
                                                                                                                                                                      "")));
        answered(
                &a,
                ITEMS("Pod",
                      POD_ITEM(
                              "big",
                              "\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":{"
                              "\"reason\":\"OOMKilled\"}}}]") "," POD_ITEM("gone",
                                                                           "\"phase\":\"Failed\",\"reason\":"
                                                                           "\"Evicted\"") "," POD_ITEM("wait"
                                                                                                       "s",
                                                                                                       "\"pha"
                                                                                                       "se\":"
                                                                                                       "\"Pen"
                                                                                                       "ding"
                                                                                                       "\","
                                                                                                       "\"con"
                                                                                                       "ditio"
                                                                                                       "ns\":"
                                                                                                       "[{"
                                                                                                       "\"typ"
                                                                                                       "e\":"
                                                                                                       "\"Pod"
                                                                                                       "Sched"
                                                                                                       "uled"
                                                                                                       "\","
                                                                                                       "\"sta"
                                                                                                       "tus\""
                                                                                                       ":"
                                                                                                       "\"Fal"
                                                                                                       "se\","
                                                                                                       "\"mes"
                                                                                                       "sage"
                                                                                                       "\":"
                                                                                                       "\"0/"
                                                                                                       "3 "
                                                                                                       "nodes"
                                                                                                       "|are"
                                                                                                       "\\nav"
                                                                                                       "ailab"
                                                                                                       "le\"}"
                                                                                                       "]") "," POD_ITEM("pulls",
                                                                                                                         "\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":{\"waiting\":{"
                                                                                                                         "\"reason\":\"ImagePullBackOff\"}}}]") "," POD_ITEM("never",
                                                                                                                                                                             "\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":{\"waiting\":{"
                                                                                                                                                                             "\"reason\":\"InvalidImageName\"}}}]")));
        answered(&a, ITEMS("Event", "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"name\":\"small\"},"
                                    "\"message\":\"exceeded quota\"}"));
        assert_read(batch_kubernetes.status_read, buf_z(&a.out),
                    "done done 2 ()\nlate late 4 (Job was active longer than specified deadline)\nbig big 5 "
                    "(limit)\n"
                    "gone gone 6 (Evicted)\nruns runs 1 ()\nwaits waits 0 (0/3 nodes?are?available)\n"
                    "pulls pulls 0 (ImagePullBackOff)\nnever never 7 (InvalidImageName)\n"
                    "held held 0 (the Job is suspended)\nsmall small 0 (exceeded quota)\n");
        answer_deinit(&a);
}

static void a_job_that_is_not_there_was_deleted(void **state)
{
        struct answer a = {{0}};

        (void)state;
        answered(&a, "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"message\":\"no\","
                     "\"details\":{\"name\":\"drover-1-2\",\"group\":\"batch\",\"kind\":\"jobs\"}}");
        assert_read(batch_kubernetes.past_read, buf_z(&a.out),
                    "drover-1-2 drover-1-2 3 (the Job was deleted)\n");
        assert_string_equal(buf_z(&a.errors), "NotFound: no");
        answer_deinit(&a);
}

static void refusals_are_final_only_if_nobody_can_mend_them(void **state)
{
        static const struct {
                const char *text;
                bool refused, full;
        } of[] = {{"Invalid: Job.batch \"x\" is invalid", true, false},
                  {"Forbidden: admission webhook \"w\" denied the request: no", true, false},
                  {"Forbidden: jobs.batch \"x\" is forbidden: exceeded quota: small", true, true},
                  {"Forbidden: jobs.batch is forbidden: User \"a\" cannot patch resource \"jobs\"", false,
                   false},
                  {"Unauthorized: Unauthorized", false, false},
                  {"Kubernetes answers with HTTP status 503", false, false}};

        (void)state;
        for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
                assert_int_equal(batch_kubernetes.refused(1, str_of(of[i].text)), of[i].refused);
                assert_int_equal(batch_kubernetes.full(str_of(of[i].text)), of[i].full);
        }
        assert_false(batch_kubernetes.refused(-1, STR("Invalid: x")));
}

static const struct run_word words[] = {
        {"namespace", "lab"},      {"image", "debian:12"},     {"volume", "claim:data"},
        {"mount", "/srv/drover/"}, {"node_labels", "a=b"},     {"tolerations", "k:NoExecute"},
        {"pull_secrets", "one"},   {"rest", "https://k:6443"}, {"ca_file", "/ca"}};

static void an_apply_says_it_all(void **state)
{
        const struct batch_settings s = {words, sizeof(words) / sizeof(*words)};
        const struct run_word job[] = {{"batchqueue", "team"}, {"KubernetesImage", "tools:1"}};
        const struct run_spec spec = {.cpus_milli = 1500,
                                      .memory_bytes = 1 << 30,
                                      .gpus = 2,
                                      .walltime_ms = 60000,
                                      .sandbox = "/srv/drover/box \"1\"",
                                      .words = job,
                                      .word_count = 2};
        struct batch_call c = {.settings = &s};
        BUF_CLEANUP struct buf head = {0};
        struct err err = {""};

        (void)state;
        assert_int_equal(batch_kubernetes.check(&s, &err), 0);
        assert_int_equal(batch_kubernetes.resources(&s, &spec, &head, &err), 0);
        batch_kubernetes.submit(&c, &(struct batch_sending){.name = "drover-1-2",
                                                            .script = "/srv/drover/batch.k/drover-1-2.sh",
                                                            .head = buf_z(&head),
                                                            .count = 1});
        assert_string_equal(c.method, "PATCH");
        assert_string_equal(c.type, "application/apply-patch+yaml");
        assert_string_equal(c.paths.v[0],
                            "/apis/batch/v1/namespaces/lab/jobs/drover-1-2?fieldManager=drover&force=true");
        static const char *const parts[] = {
                "\"name\":\"drover-1-2\"",
                "\"kueue.x-k8s.io/queue-name\":\"team\"",
                "\"suspend\":true",
                "\"backoffLimit\":0",
                "\"activeDeadlineSeconds\":180",
                "\"automountServiceAccountToken\":false",
                "\"image\":\"tools:1\"",
                "\"limits\":{\"cpu\":\"1500m\",\"memory\":\"1073741824\",\"nvidia.com/gpu\":\"2\"}",
                "\"persistentVolumeClaim\":{\"claimName\":\"data\"}",
                "{\"name\":\"drover\",\"mountPath\":\"/srv/drover/"
                "batch.k\",\"subPath\":\"batch.k\",\"readOnly\":true}",
                "{\"name\":\"drover\",\"mountPath\":\"/srv/drover/box \\\"1\\\"\",\"subPath\":\"box "
                "\\\"1\\\"\"}",
                "\"nodeSelector\":{\"a\":\"b\"}",
                "{\"key\":\"k\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}"};
        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
                assert_true(str_search(buf_view(&c.input), str_of(parts[i])) >= 0);
        batch_call_deinit(&c);
}

static void words_that_no_object_can_have_are_refused(void **state)
{
        const struct batch_settings s = {words, sizeof(words) / sizeof(*words)};
        static const struct run_word bad[] = {{"KubernetesImage", "a b"},
                                              {"BatchQueue", "../x"},
                                              {"KubernetesPriorityClass", "High"},
                                              {"BatchProject", "a b"}};
        BUF_CLEANUP struct buf head = {0};
        struct err err;

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_int_equal(
                        batch_kubernetes.resources(
                                &s, &(struct run_spec){.sandbox = "/b", .words = &bad[i], .word_count = 1},
                                &head, &err),
                        -EINVAL);
        assert_int_equal(batch_kubernetes.resources(&s, &(struct run_spec){.sandbox = "/b\n/c"}, &head, &err),
                         -EINVAL);
        assert_int_equal(batch_kubernetes.resources(&s, &(struct run_spec){0}, &head, &err),
                         0); /* a question */
}

static void what_is_free_is_counted(void **state)
{
        const struct batch_settings s = {words, 4};
        struct run_capacity c = {0};
        struct answer a = {{0}};

        (void)state;
#define NODE_ITEM(name, spec, ready, cpu)                                                                    \
        "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec                                              \
        "},\"status\":{\"allocatable\":{\"cpu\":\"" cpu "\",\"memory\":\"8Gi\",\"nvidia.com/"                \
        "gpu\":\"2\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"
        answered(
                &a,
                ITEMS("Node",
                      NODE_ITEM("a", "", "True", "4") "," NODE_ITEM(
                              "b", "\"unschedulable\":true", "True",
                              "4") "," NODE_ITEM("c", "", "Unknown",
                                                 "4") "," NODE_ITEM("d",
                                                                    "\"taints\":[{\"key\":\"k\","
                                                                    "\"effect\":\"NoSchedule\"}]",
                                                                    "True",
                                                                    "4") "," NODE_ITEM("e",
                                                                                       "\"taints\":[{\"key\":"
                                                                                       "\"k\",\"effect\":"
                                                                                       "\"PreferNoSchedule\"}"
                                                                                       "]",
                                                                                       "True", "7910m")));
        answered(&a,
                 ITEMS("Pod",
                       "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"a\",\"containers\":["
                       "{\"resources\":{\"requests\":{\"cpu\":\"500m\",\"memory\":\"1Gi\",\"nvidia.com/gpu\":"
                       "\"1\"}}},{\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]},\"status\":{\"phase\":"
                       "\"Running\"}}"));
        batch_kubernetes.capacity_read(&s, buf_view(&a.out), &c);
        assert_int_equal(c.nodes, 2);
        assert_int_equal(c.cpus_milli, 11000);
        assert_int_equal(c.idle_cpus_milli, 9000);
        assert_int_equal(c.idle_memory_bytes, 15ll << 30);
        assert_int_equal(c.idle_gpus, 3);
        answer_deinit(&a);
        a = (struct answer){{0}};
        c = (struct run_capacity){0};
        answered(&a, "{\"kind\":\"ResourceQuota\",\"status\":{\"hard\":{\"requests.cpu\":\"10\",\"memory\":"
                     "\"4Gi\"},"
                     "\"used\":{\"requests.cpu\":\"2500m\",\"memory\":\"1Gi\"}}}");
        batch_kubernetes.capacity_read(&s, buf_view(&a.out), &c);
        assert_int_equal(c.cpus_milli, 10000);
        assert_int_equal(c.idle_cpus_milli, 7000);
        assert_int_equal(c.idle_memory_bytes, 3ll << 30);
        answer_deinit(&a);
        /* what pods have cannot become so much that it is little again */
        c = (struct run_capacity){0};
        batch_kubernetes.capacity_read(
                &s,
                STR("node|x|||Ready|True|8|16Gi|\n"
                    "pod|a|Running|||||||x|1e18,1e18,999999P,9000P,9000P,9000P|1e17,1e17|\n"
                    "pod|b|Running|||||||x|9000P,9000P,9000P|1e17|\n"),
                &c);
        assert_true(c.cpus_milli == 8000 && c.idle_cpus_milli == 0 && c.idle_memory_bytes == 0);
        c = (struct run_capacity){0};
        batch_kubernetes.capacity_read(&s, STR("node|x|||Ready|True|1e99|what\nquota\n|\n"), &c);
        assert_int_equal(c.cpus_milli, 0);
        assert_non_null(c.nothing);
}

static size_t watched(const char *version)
{
        static const struct run_word space[] = {{.name = "namespace", .value = "drover"}};
        const struct batch_settings settings = {space, 1};
        struct batch_call call = {.settings = &settings};
        BUF_CLEANUP struct buf json = {0};
        struct answer a = {{0}};
        size_t n;

        buf_printf(&json, "{\"kind\":\"JobList\",\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[]}",
                   version);
        answered(&a, buf_z(&json));
        batch_kubernetes.watch(&call, buf_view(&a.out));
        n = call.paths.n;
        if (n)
                assert_non_null(strstr(call.paths.v[0], "&resourceVersion=1047&"));
        batch_call_deinit(&call);
        answer_deinit(&a);
        return n;
}

static void a_version_that_is_no_word_is_not_watched(void **state)
{
        (void)state;
        assert_int_equal(watched("1047"), 1);
        assert_int_equal(watched(""), 0);
        assert_int_equal(watched("1&watch=false"), 0);
        assert_int_equal(watched("1 HTTP/1.1"), 0);
}

struct known {
        const char *name;
        bool refused;
};

static void on_job(void *arg, const struct batch_line *line)
{
        struct known *k = arg;

        if (str_eqz(line->name, k->name))
                k->refused = str_eqz(line->reason, "no quota");
}

/* An answer may name millions of pods, each of another Job: no more of them are kept than clusters have. */
static void more_pods_than_a_cluster_has(void **state)
{
        struct known first = {"j0", false}, last = {"j249999", false};
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        for (unsigned i = 0; i < 250000; i++)
                buf_printf(&out, "event|j%u|no quota\n", i);
        buf_addz(&out, "job|j0|||||\njob|j249999|||||\n");
        batch_kubernetes.status_read(buf_view(&out), on_job, &first);
        batch_kubernetes.status_read(buf_view(&out), on_job, &last);
        assert_true(first.refused);
        assert_false(last.refused);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(states_come_of_jobs_pods_and_events),
                cmocka_unit_test(a_job_that_is_not_there_was_deleted),
                cmocka_unit_test(refusals_are_final_only_if_nobody_can_mend_them),
                cmocka_unit_test(an_apply_says_it_all),
                cmocka_unit_test(words_that_no_object_can_have_are_refused),
                cmocka_unit_test(what_is_free_is_counted),
                cmocka_unit_test(a_version_that_is_no_word_is_not_watched),
                cmocka_unit_test(more_pods_than_a_cluster_has),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
