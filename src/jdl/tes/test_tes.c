#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "jdl/tes/paths.h"
#include "jdl/tes/tes.h"

#define ONE "\"executors\":[{\"image\":\"busybox:1\",\"command\":[\"/bin/echo\",\"a b\"]}]"

static int read_task(const char *text, struct tes_task *t, struct err *err)
{
        json_error_t e;
        json_t *task = json_loads(text, 0, &e);

        if (!task)
                fail_msg("%s: %s", text, e.text);
        int r = tes_read(task, 1000, t, err);
        json_decref(task);
        return r;
}

static void good(const char *text, struct tes_task *t)
{
        struct err err = {""};

        if (read_task(text, t, &err) != 0)
                fail_msg("%s: %s", text, err.text);
        assert_int_equal(t->form.part_count, 1);
}

static void has(const struct tes_task *t, const char *name, const char *text)
{
        const struct form_attribute *a = form_get(&t->form.parts[0], str_of(name));

        if (!a)
                fail_msg("no %s", name);
        assert_string_equal(a->text, text);
}

static void attribute(const char *task, const char *name, const char *text)
{
        struct tes_task t;

        good(task, &t);
        has(&t, name, text);
        tes_task_deinit(&t);
}

static void wrong(const char *text, const char *why)
{
        struct tes_task t;
        struct err err = {""};

        if (read_task(text, &t, &err) == 0)
                fail_msg("%s is taken", text);
        if (str_search(str_of(err.text), str_of(why)) != 0)
                fail_msg("%s: %s", text, err.text);
        tes_task_deinit(&t);
}

static void test_executors(void **state)
{
        struct tes_task t;

        (void)state;
        good("{\"executors\":[{\"image\":\"busybox:1\",\"command\":[\"sh\",\"-c\",\"echo $HOME 'x'\\n\"],"
             "\"env\":{\"A\":\"b c\"},\"workdir\":\"/w/\",\"stdin\":\"/d/in\",\"stdout\":\"/d/out\","
             "\"stderr\":\"/d/err\",\"ignore_error\":true},"
             "{\"image\":\"/images/a.sif\",\"command\":[\"true\"]}]}",
             &t);
        has(&t, "ContainerImage", "\"docker://busybox:1\"");
        has(&t, "Cmd", "\"sh\"");
        has(&t, "Arguments", "\"-c 'echo $HOME ''x''\\n'\"");
        has(&t, "Environment", "\"'A=b c'\"");
        has(&t, "ContainerWorkDir", "\"/w\"");
        has(&t, "In", "\"tes/d/in\"");
        has(&t, "Out", "\"tes/d/out\"");
        has(&t, "Err", "\"tes/d/err\"");
        has(&t, "IgnoreFailure", "true");
        has(&t, "StepCount", "2");
        has(&t, "Step1ContainerImage", "\"/images/a.sif\"");
        has(&t, "Step1Cmd", "\"true\"");
        has(&t, "Step1ContainerWorkDir", "\"\"");
        has(&t, "ContainerMounts", "\"tes/d/=/d\"");
        has(&t, "TransferExecutable", "false");
        has(&t, "TransferOutput", "\"\"");
        assert_null(form_get(&t.form.parts[0], STR("Step1IgnoreFailure")));
        tes_task_deinit(&t);
}

static void test_files(void **state)
{
        struct tes_task t;

        (void)state;
        good("{\"inputs\":[{\"path\":\"/data/in\",\"content\":\"text\",\"url\":\"s3://not/this\"},"
             "{\"path\":\"/ref/a\",\"url\":\"http://h/a,b\"},"
             "{\"path\":\"/d\",\"url\":\"/p/q/\",\"type\":\"DIRECTORY\"}],"
             "\"outputs\":[{\"path\":\"/out/x\",\"url\":\"s3://b/x=1\"},"
             "{\"path\":\"/out/*/y\",\"path_prefix\":\"/out/\",\"url\":\"s3://b/dir\"},"
             "{\"path\":\"/o2\",\"url\":\"http://h/o2/\",\"type\":\"DIRECTORY\"}],"
             "\"volumes\":[\"/out/inner\",\"/vol/A/\"]," ONE "}",
             &t);
        has(&t, "TransferInput", "\"http://h/a%2Cb#name=tes/ref/a,file:///p/q#name=tes/d,tes\"");
        has(&t, "TransferOutput", "\"tes/out/x,tes/out/*/y,tes/o2\"");
        has(&t, "TransferOutputRemaps",
            "\"tes/out/x=s3://b/x=1;tes/out/./*/y=s3://b/dir/;tes/o2=http://h/o2\"");
        has(&t, "ContainerMounts",
            "\"tes/d/=/d;tes/data/in=/data/in;tes/o2/=/o2;tes/out/=/out;tes/ref/a=/ref/a;tes/vol/A/=/vol/"
            "A\"");
        assert_int_equal(t.content_count, 1);
        assert_string_equal(t.contents[0].name, "tes/data/in");
        assert_true(str_eqz(t.contents[0].text, "text"));
        tes_task_deinit(&t);
}

static void test_resources(void **state)
{
        struct tes_task t;

        (void)state;
        good("{\"resources\":{\"cpu_cores\":3,\"ram_gb\":1.5,\"disk_gb\":2,\"preemptible\":true,"
             "\"backend_parameters\":{\"PRIORITY\":\"7\",\"VmSize\":\"x\",\"requirements\":\"TARGET.Fast\"},"
             "\"zones\":[\"a\",\"b\"]}," ONE "}",
             &t);
        has(&t, "RequestCpus", "3");
        has(&t, "RequestMemory", "1431");
        has(&t, "RequestDisk", "1953125");
        has(&t, "JobPrio", "7");
        const struct form_attribute *r = form_get(&t.form.parts[0], STR("Requirements"));
        assert_true(str_search(str_of(r->text), STR("TARGET.Fast")) >= 0);
        assert_true(str_search(str_of(r->text), STR("TARGET.Zone =?= \"b\"")) >= 0);
        assert_true(str_search(str_of(r->text), STR("HasContainer")) >= 0);
        r = form_get(&t.form.parts[0], STR("TesTask"));
        assert_true(str_search(str_of(r->text), STR("VmSize is not supported")) >= 0);
        assert_true(str_search(str_of(r->text), STR("\\\"VmSize\\\":")) < 0);
        tes_task_deinit(&t);
        wrong("{\"resources\":{\"backend_parameters\":{\"VmSize\":\"x\"},\"backend_parameters_strict\":true}"
              "," ONE "}",
              "/resources/backend_parameters/VmSize: ");
        attribute("{\"name\":\"my \\\"task\\\"\"," ONE "}", "JobBatchName", "\"my \\\"task\\\"\"");
}

static void test_what_is_wrong(void **state)
{
        static const char *const paths[] = {"data", "/",    "/a//b",  "/a/../b", "/a,b",
                                            "/a=b", "/a;b", "/a\\nb", ""};

        (void)state;
        wrong("{}", "/executors: ");
        wrong("{\"executors\":[]}", "/executors: ");
        wrong("{\"executors\":{}}", "/executors: a list");
        wrong("{\"executors\":[7]}", "/executors/0: an object");
        wrong("{\"executors\":[{\"command\":[\"a\"]}]}", "/executors/0/image: ");
        wrong("{\"executors\":[{\"image\":\"a b\",\"command\":[\"a\"]}]}", "/executors/0/image: ");
        wrong("{\"executors\":[{\"image\":\"a\"}]}", "/executors/0/command: it is missing");
        wrong("{\"executors\":[{\"image\":\"a\",\"command\":[]}]}", "/executors/0/command: ");
        wrong("{\"executors\":[{\"image\":\"a\",\"command\":[\"b\",3]}]}", "/executors/0/command/1: ");
        wrong("{\"executors\":[{\"image\":\"a\",\"command\":[\"--rm\"]}]}", "/executors/0/command/0: ");
        wrong("{\"executors\":[{\"image\":\"a\",\"command\":[\"b\"],\"env\":{\"A=\":\"c\"}}]}",
              "/executors/0/env: ");
        wrong("{\"executors\":[{\"image\":\"a\",\"command\":[\"b\"],\"env\":{\"A\":1}}]}",
              "/executors/0/env/A: ");
        wrong("{\"executors\":[{\"image\":\"a\",\"command\":[\"b\"],\"stdout\":\"/log\"}]}",
              "/executors/0/stdout: what a task shares is in a folder");
        wrong("{\"executors\":[{\"image\":\"a\",\"command\":[\"b\"],\"stdout\":\"/proc/self/x\"}]}",
              "/executors/0/stdout: /proc is");
        wrong("{\"name\":7," ONE "}", "/name: a string");
        wrong("{\"tags\":{\"a\":1}," ONE "}", "/tags/a: ");
        wrong("{\"inputs\":[{\"url\":\"s3://a/b\"}]," ONE "}", "/inputs/0/path: it is missing");
        wrong("{\"inputs\":[{\"path\":\"/a/b\"}]," ONE "}", "/inputs/0/url: ");
        wrong("{\"inputs\":[{\"path\":\"/a/b\",\"url\":\"b\"}]," ONE "}", "/inputs/0/url: a URL");
        wrong("{\"inputs\":[{\"path\":\"/a/b\",\"url\":\"s3://a/b\",\"type\":\"DIRECTORY\"}]," ONE "}",
              "/inputs/0/type: ");
        wrong("{\"inputs\":[{\"path\":\"/a/b\",\"url\":\"s3://a/b\",\"type\":\"LINK\"}]," ONE "}",
              "/inputs/0/type: ");
        wrong("{\"outputs\":[{\"path\":\"/a/b\"}]," ONE "}", "/outputs/0/url: ");
        wrong("{\"outputs\":[{\"path\":\"/a/b\",\"url\":\"s3://a/b c\"}]," ONE "}", "/outputs/0/url: ");
        wrong("{\"outputs\":[{\"path\":\"/a/*\",\"url\":\"s3://a/b\"}]," ONE "}", "/outputs/0/path_prefix: ");
        wrong("{\"outputs\":[{\"path\":\"/a/*\",\"path_prefix\":\"/b\",\"url\":\"s3://a/b\"}]," ONE "}",
              "/outputs/0/path_prefix: ");
        wrong("{\"outputs\":[{\"path\":\"/*\",\"path_prefix\":\"/\",\"url\":\"s3://a/b\"}]," ONE "}",
              "/outputs/0/path_prefix: ");
        wrong("{\"outputs\":[{\"path\":\"/a/b\",\"url\":\"s3://a/b\"},{\"path\":\"/a/b/\",\"url\":\"s3://a/"
              "c\"}]," ONE "}",
              "/outputs/1/path: another");
        wrong("{\"inputs\":[{\"path\":\"/a/b\",\"url\":\"s3://a/b\"},{\"path\":\"/a/"
              "b\",\"content\":\"c\"}]," ONE "}",
              "/inputs/1/path: another");
        attribute("{\"inputs\":[{\"path\":\"/a/b\",\"url\":\"s3://a/b\"},{\"path\":\"/a/b\",\"url\":\"s3://a/"
                  "b\"}]," ONE "}",
                  "TransferInput", "\"s3://a/b#name=tes/a/b\"");
        wrong("{\"volumes\":[3]," ONE "}", "/volumes/0: ");
        wrong("{\"resources\":{\"cpu_cores\":1.5}," ONE "}", "/resources/cpu_cores: an integer");
        wrong("{\"resources\":{\"ram_gb\":-1}," ONE "}", "/resources/ram_gb: ");
        wrong("{\"resources\":{\"zones\":[\"a\\nqueue 100\"]}," ONE "}", "/resources");
        wrong("{\"resources\":{\"backend_parameters\":{\"priority\":\"1\\nqueue 5\"}}," ONE "}",
              "/resources/backend_parameters/priority: ");
        wrong("{\"resources\":{\"backend_parameters\":{\"requirements\":\"((\"}}," ONE "}", "/resources: ");
        for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
                BUF_CLEANUP struct buf task = {0};

                buf_printf(&task, "{\"volumes\":[\"%s\"]," ONE "}", paths[i]);
                wrong(buf_z(&task), "/volumes/0: ");
        }
}

static void shown(const json_t *kept, enum tes_view view, const struct tes_status *s, const char *as)
{
        BUF_CLEANUP struct buf out = {0};
        struct json j = {.out = &out};

        tes_write(&j, kept, view, s);
        assert_string_equal(buf_z(&out), as);
}

static void test_views(void **state)
{
        static const struct tes_executor_log log = {1600000000123, 1600000001000, 3, {STR("out\n"), STR("")}};
        const struct tes_status status = {.id = 7,
                                          .state = TES_EXECUTOR_ERROR,
                                          .created_ms = 1599999999000,
                                          .started_ms = 1600000000123,
                                          .ended_ms = 1600000001000,
                                          .host = STR("here"),
                                          .logs = &log,
                                          .log_count = 1};
        struct tes_task t;

        (void)state;
        good("{\"id\":\"mine\",\"state\":\"COMPLETE\",\"name\":\"n\",\"inputs\":[{\"path\":\"/a/"
             "b\",\"content\":"
             "\"x\"}]," ONE "}",
             &t);
        json_t *kept = json_pack("{s:O, s:[s]}", "task", t.task, "warnings", "w");
        shown(kept, TES_MINIMAL, &status, "{\"id\":\"7\",\"state\":\"EXECUTOR_ERROR\"}");
        shown(kept, TES_BASIC, &status,
              "{\"id\":\"7\",\"state\":\"EXECUTOR_ERROR\",\"name\":\"n\",\"inputs\":[{\"path\":\"/a/"
              "b\",\"type\":"
              "\"FILE\"}]," ONE
              ",\"logs\":[{\"logs\":[{\"start_time\":\"2020-09-13T12:26:40.123Z\",\"end_time\":"
              "\"2020-09-13T12:26:41.000Z\",\"exit_code\":3}],\"metadata\":{\"host\":\"here\"},\"start_"
              "time\":"
              "\"2020-09-13T12:26:40.123Z\",\"end_time\":\"2020-09-13T12:26:41.000Z\",\"outputs\":[]}],"
              "\"creation_time\":\"2020-09-13T12:26:39.000Z\"}");
        shown(kept, TES_FULL, &status,
              "{\"id\":\"7\",\"state\":\"EXECUTOR_ERROR\",\"name\":\"n\",\"inputs\":[{\"path\":\"/a/"
              "b\",\"content\":"
              "\"x\",\"type\":\"FILE\"}]," ONE
              ",\"logs\":[{\"logs\":[{\"start_time\":\"2020-09-13T12:26:40.123Z\",\"end_time\":"
              "\"2020-09-13T12:26:41.000Z\",\"stdout\":\"out\\n\",\"stderr\":\"\",\"exit_code\":3}],"
              "\"metadata\":"
              "{\"host\":\"here\"},\"start_time\":\"2020-09-13T12:26:40.123Z\",\"end_time\":"
              "\"2020-09-13T12:26:41.000Z\",\"outputs\":[],\"system_logs\":[\"w\"]}],"
              "\"creation_time\":\"2020-09-13T12:26:39.000Z\"}");
        shown(NULL, TES_FULL, &status, "{\"id\":\"7\",\"state\":\"EXECUTOR_ERROR\"}");
        json_decref(kept);
        tes_task_deinit(&t);
}

/* The table of the specification. */
static void test_tags(void **state)
{
        static const struct {
                const char *tags, *key[2], *value[2];
                bool match;
        } rows[] = {
                {"{\"foo\":\"bar\"}", {"foo"}, {"bar"}, true},
                {"{\"foo\":\"bat\"}", {"foo"}, {"bar"}, false},
                {"{\"foo\":\"\"}", {"foo"}, {""}, true},
                {"{\"foo\":\"bar\",\"baz\":\"bat\"}", {"foo", "baz"}, {"bar", "bat"}, true},
                {"{\"foo\":\"bar\",\"baz\":\"bat\"}", {"foo"}, {"bar"}, true},
                {"{\"foo\":\"bar\"}", {"foo", "baz"}, {"bar", "bat"}, false},
                {"{\"foo\":\"bar\"}", {"foo"}, {""}, true},
                {"{}", {"foo"}, {""}, false},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct str keys[2] = {str_of(rows[i].key[0]), str_of(rows[i].key[1])},
                           values[2] = {str_of(rows[i].value[0]), str_of(rows[i].value[1])};
                json_t *kept = json_pack("{s:{s:o, s:s}}", "task", "tags", json_loads(rows[i].tags, 0, NULL),
                                         "name", "one task");

                assert_int_equal(tes_matches(kept, STR("one"), keys, values, rows[i].key[1] ? 2 : 1),
                                 rows[i].match);
                assert_false(tes_matches(kept, STR("two"), keys, values, 0));
                json_decref(kept);
        }
}

static void test_names(void **state)
{
        enum tes_state s;
        enum tes_view v;

        (void)state;
        for (int i = 0; i < TES_STATES; i++) {
                assert_int_equal(tes_state_read(str_of(tes_state_name((enum tes_state)i)), &s), 0);
                assert_int_equal(s, i);
        }
        assert_int_not_equal(tes_state_read(STR("queued"), &s), 0);
        assert_int_equal(tes_view_read(STR("BASIC"), &v), 0);
        assert_int_equal(v, TES_BASIC);
        assert_int_not_equal(tes_view_read(STR(""), &v), 0);
        assert_string_equal(tes_backend_key(0), "accounting_group");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_executors), cmocka_unit_test(test_files),
                cmocka_unit_test(test_resources), cmocka_unit_test(test_what_is_wrong),
                cmocka_unit_test(test_views),     cmocka_unit_test(test_tags),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
