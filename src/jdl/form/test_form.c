#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jdl/form/form_json.h"

static void test_attributes(void **state)
{
        struct form f;
        struct form_part *p;

        (void)state;
        form_init(&f);
        p = form_add_part(&f, 3);
        form_set(p, STR("Cmd"), STR("\"/bin/a\""), 1);
        form_set_late(p, STR("Cmd"), true);
        form_set(p, STR("CMD"), STR("\"/bin/b\""), 2);
        assert_int_equal(p->attribute_count, 1);
        assert_string_equal(form_get(p, STR("cmd"))->text, "\"/bin/b\"");
        assert_string_equal(form_get(p, STR("cmd"))->name, "Cmd");
        assert_int_equal(form_get(p, STR("cmd"))->line, 2);
        assert_false(form_get(p, STR("cmd"))->late);
        assert_null(form_get(p, STR("Args")));
        form_deinit(&f);
}

static void test_members(void **state)
{
        struct form f;
        struct form_part *p;

        (void)state;
        form_init(&f);
        assert_int_equal(form_members(&f), 0);
        form_add_part(&f, 1)->steps = 1000000;
        p = form_add_part(&f, 2);
        p->rows = 3;
        p->steps = 2;
        assert_int_equal(form_members(&f), 1000006);
        form_drop_part(&f);
        assert_int_equal(form_members(&f), 1000000);
        form_deinit(&f);
        assert_int_equal(f.part_count, 0);
}

static void test_warnings_once(void **state)
{
        struct form f;

        (void)state;
        form_init(&f);
        form_warn(&f, 4, "%s is ignored", "x");
        form_warn(&f, 4, "%s is ignored", "x");
        form_warn(&f, 5, "%s is ignored", "x");
        assert_int_equal(f.warning_count, 2);
        assert_string_equal(f.warnings[0].text, "x is ignored");
        form_deinit(&f);
}

static void test_json(void **state)
{
        static const struct form_file file = {"run.sh", "00ff", 12, true};
        static const char *const uploads[] = {NULL, "u-1"};
        BUF_CLEANUP struct buf out = {0};
        struct form f;
        struct form_part *p;

        (void)state;
        form_init(&f);
        p = form_add_part(&f, 1);
        form_set(p, STR("Args"), STR("\"$(x) \\\"q\\\"\""), 1);
        form_set_late(p, STR("Args"), true);
        assert_int_equal(form_add_variable(p, STR("x")), 0);
        assert_int_equal(form_add_variable(p, STR("y")), 1);
        buf_addz(&p->items, "1\x1f"
                            "2\n");
        p = form_add_part(&f, 2);
        form_add_variable(p, STR("z"));
        p->rows = 7;
        form_write_json(
                &out, &f,
                &(struct form_body){
                        .uuid = "id", .spooled = &file, .spooled_count = 1, .items_uploads = uploads});
        assert_string_equal(
                buf_z(&out),
                "{\"uuid\":\"id\",\"parts\":[{\"attributes\":{\"Args\":\"\\\"$(x) \\\\\\\"q\\\\\\\"\\\"\"},"
                "\"late\":[\"Args\"],\"variables\":[\"x\",\"y\"],\"items\":\"1\\u001f2\\n\",\"rows\":1,"
                "\"steps\":1},{\"attributes\":{},\"late\":[],\"variables\":[\"z\"],\"items_upload\":\"u-1\","
                "\"rows\":7,\"steps\":1}],\"spooled\":[{\"name\":\"run.sh\",\"sha256\":\"00ff\",\"size\":12,"
                "\"executable\":true}],\"hold\":false}");
        form_deinit(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_attributes),
                cmocka_unit_test(test_members),
                cmocka_unit_test(test_warnings_once),
                cmocka_unit_test(test_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
