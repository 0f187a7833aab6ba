#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/api/submit/submit_json.h"

#define UUID "\"uuid\":\"2058e9bf-74d5-46d3-b5e5-ba29ae191711\""

static int read_text(const char *text, struct submission *s, json_t **doc, const char ***uploads,
                     struct err *err)
{
        *doc = json_loads(text, 0, NULL);
        *uploads = NULL;
        assert_non_null(*doc);
        return submit_json_read(*doc, s, uploads, err);
}

static void test_good(void **state)
{
        struct submission s;
        const char **uploads;
        struct err err = {0};
        json_t *doc;

        (void)state;
        assert_int_equal(
                read_text("{" UUID ",\"hold\":true,\"parts\":[{\"attributes\":{\"Cmd\":\"\\\"/bin/"
                          "sh\\\"\",\"Arguments\":"
                          "\"\\\"-c "
                          "$(Item)\\\"\",\"Owner\":\"\\\"root\\\"\",\"droveroutputs\":\"{}\"},\"late\":["
                          "\"arguments\"],\"variables\":["
                          "\"Item\"],"
                          "\"items\":\"a\\nb\\n\",\"steps\":3},{\"attributes\":{},\"variables\":[\"x\"],"
                          "\"items_upload\":\"u\"}],"
                          "\"spooled\":[{\"name\":\"d/a.txt\",\"size\":5,\"executable\":true,\"sha256\":"
                          "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"}]}",
                          &s, &doc, &uploads, &err),
                0);
        assert_int_equal(s.uuid[0], 0x20);
        assert_int_equal(s.uuid[15], 0x11);
        assert_true(s.hold);
        assert_int_equal(s.part_count, 2);
        assert_int_equal(s.parts[0].attribute_count,
                         2); /* the owner and the outputs are not the submitter's to say */
        assert_true(str_eqz(s.parts[0].attributes[0].text, "\"/bin/sh\""));
        assert_false(s.parts[0].attributes[0].late);
        assert_true(s.parts[0].attributes[1].late);
        assert_int_equal(s.parts[0].rows, 2);
        assert_int_equal(s.parts[0].steps, 3);
        assert_null(uploads[0]);
        assert_string_equal(uploads[1], "u");
        assert_int_equal(s.spooled_count, 1);
        assert_int_equal(s.spooled[0].sha256[1], 0x11);
        assert_int_equal(s.spooled[0].sha256[31], 0xff);
        assert_true(s.spooled[0].executable);
        submission_deinit(&s);
        free(uploads);
        json_decref(doc);
}

static void test_bad(void **state)
{
        static const struct {
                const char *text, *word;
                int code;
        } bad[] = {
                {"{}", "uuid", -EINVAL},
                {"{\"uuid\":\"x\",\"parts\":[]}", "uuid", -EINVAL},
                {"{" UUID "}", "parts", -EINVAL},
                {"{" UUID ",\"parts\":[3]}", "object", -EINVAL},
                {"{" UUID ",\"parts\":[{}]}", "attributes", -EINVAL},
                {"{" UUID ",\"parts\":[{\"attributes\":{\"Cmd\":7}}]}", "Cmd", -EINVAL},
                {"{" UUID ",\"parts\":[{\"attributes\":{},\"late\":{}}]}", "late", -EINVAL},
                {"{" UUID ",\"parts\":[{\"attributes\":{},\"variables\":[7]}]}", "variable", -EINVAL},
                {"{" UUID ",\"parts\":[{\"attributes\":{},\"variables\":[\"a b\"]}]}", "variable", -EINVAL},
                {"{" UUID ",\"parts\":[{\"attributes\":{},\"items\":7}]}", "items", -EINVAL},
                {"{" UUID ",\"parts\":[{\"attributes\":{},\"steps\":-1}]}", "steps", -EINVAL},
                {"{" UUID ",\"parts\":[{\"attributes\":{},\"rows\":\"1\"}]}", "rows", -EINVAL},
                {"{" UUID ",\"parts\":[],\"spooled\":7}", "spooled", -EINVAL},
                {"{" UUID ",\"parts\":[],\"spooled\":[{\"name\":\"../x\"}]}", "name", -EINVAL},
                {"{" UUID ",\"parts\":[],\"spooled\":[{\"name\":\"/etc/passwd\"}]}", "name", -EINVAL},
                {"{" UUID ",\"parts\":[],\"spooled\":[{\"name\":\"x\",\"sha256\":\"00\"}]}", "sha256",
                 -EINVAL},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct submission s;
                const char **uploads;
                struct err err = {0};
                json_t *doc;

                assert_int_equal(read_text(bad[i].text, &s, &doc, &uploads, &err), bad[i].code);
                if (!strstr(err.text, bad[i].word))
                        fail_msg("\"%s\" does not name %s", err.text, bad[i].word);
                assert_int_equal(s.part_count, 0);
                json_decref(doc);
        }
}

static json_t *completed(const char *text, int wanted, const char *word)
{
        json_t *doc = json_loads(text, 0, NULL);
        struct err err = {0};

        assert_non_null(doc);
        assert_int_equal(submit_json_complete(doc, &err), wanted);
        if (word && !strstr(err.text, word))
                fail_msg("\"%s\" does not name %s", err.text, word);
        return doc;
}

static void test_what_is_left_to_the_server(void **state)
{
        static const struct {
                const char *name, *text;
        } wanted[] = {{"a", "\"it's \\\"x\\\" \\\\ $(Process)\""},
                      {"b", "2"},
                      {"c", "1.5"},
                      {"d", "true"},
                      {"e", "undefined"},
                      {"f", "{1, {\"x\"}, false}"}};
        json_t *doc = completed(
                "{\"parts\":[{\"values\":{\"a\":\"it's \\\"x\\\" \\\\ $(Process)\",\"b\":2,\"c\":1.5,"
                "\"d\":true,\"e\":null,\"f\":[1,[\"x\"],false]}}]}",
                0, NULL);
        const json_t *got = json_object_get(json_array_get(json_object_get(doc, "parts"), 0), "attributes");
        char *first;

        (void)state;
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
                assert_string_equal(json_string_value(json_object_get(got, wanted[i].name)), wanted[i].text);
        first = strdup(json_string_value(json_object_get(doc, "uuid")));
        json_decref(doc);
        doc = completed("{\"parts\":[]}", 0, NULL);
        assert_string_not_equal(json_string_value(json_object_get(doc, "uuid")), first);
        free(first);
        json_decref(doc);
        doc = completed("{" UUID "}", 0, NULL);
        assert_string_equal(json_string_value(json_object_get(doc, "uuid")),
                            "2058e9bf-74d5-46d3-b5e5-ba29ae191711");
        json_decref(doc);
        json_decref(completed("{\"parts\":[{\"values\":7}]}", -EINVAL, "values"));
        json_decref(completed("{\"parts\":[{\"values\":{\"x\":{}}}]}", -EINVAL, "x must be"));
        json_decref(completed("{\"parts\":[{\"values\":{\"x\":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}}]}",
                              -EINVAL, "x must be"));
        json_decref(completed("{\"parts\":[{\"values\":{\"x\":1},\"attributes\":{\"x\":\"1\"}}]}", -EINVAL,
                              "x is in"));
        json_decref(completed("{\"parts\":[{\"values\":{\"x\":1},\"attributes\":[]}]}", -EINVAL, "objects"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_left_to_the_server),
                cmocka_unit_test(test_good),
                cmocka_unit_test(test_bad),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
