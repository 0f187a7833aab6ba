#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jdl/condor/keywords.h"

static void test_find(void **state)
{
        (void)state;
        assert_string_equal(keyword_find(STR("Executable"))->name, "executable");
        assert_string_equal(keyword_find(STR("RequestMemory"))->name, "request_memory");
        assert_string_equal(keyword_find(STR("request_gpus"))->name, "request_gpus");
        assert_string_equal(keyword_find(STR("request_licences"))->name, "request_*");
        assert_string_equal(keyword_find(STR("retry_request_memory_max"))->name, "retry_request_memory*");
        assert_string_equal(keyword_find(STR("box_oauth_resource"))->name, "*_oauth_resource");
        assert_string_equal(keyword_find(STR("remote_initialdir"))->name, "remote_initialdir");
        assert_string_equal(keyword_find(STR("Remote_Universe"))->name, "remote_*");
        assert_null(keyword_find(STR("_oauth_resource")));
        assert_null(keyword_find(STR("my_own")));
        assert_null(keyword_find(STR("")));
}

static void test_near(void **state)
{
        (void)state;
        assert_string_equal(keyword_near(STR("request_memroy"))->name, "request_memory");
        assert_string_equal(keyword_near(STR("argumnets"))->name, "arguments");
        assert_string_equal(keyword_near(STR("transfer_inputfiles"))->name, "transfer_input_files");
        assert_null(keyword_near(STR("x")));
        assert_null(keyword_near(STR("sample")));
        assert_null(keyword_near(STR("base_dir")));
}

static void test_quiet(void **state)
{
        const struct keyword *k = keyword_find(STR("run_as_owner"));

        (void)state;
        assert_true(keyword_is_quiet(k, STR("True")));
        assert_false(keyword_is_quiet(k, STR("False")));
        assert_false(keyword_is_quiet(keyword_find(STR("image_size")), STR("true")));
}

/* Each name is there once, says something, and a keyword that writes its value knows where to. */
static void test_table(void **state)
{
        BUF_CLEANUP struct buf manual = {0};

        (void)state;
        for (size_t i = 0; i < keyword_count; i++) {
                const struct keyword *k = &keywords[i];

                assert_ptr_equal(keyword_find(str_of(k->name)), k);
                assert_true(k->text[0] && k->text[strlen(k->text) - 1] == '.');
                assert_true(k->kind == KEYWORD_OTHER || k->attribute);
                assert_true(k->kind == KEYWORD_OTHER || k->effect == KEYWORD_ACTS ||
                            k->effect == KEYWORD_KEPT);
        }
        keyword_write_manual(&manual);
        for (size_t i = 0; i < keyword_count; i++) {
                struct str name = str_of(keywords[i].name);

                name.n -= str_ends(name, STR("*")) ? 1 : 0;
                if (str_starts(name, STR("*")))
                        name = str_skip(name, 1);
                assert_true(str_search(buf_view(&manual), name) >= 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_find),
                cmocka_unit_test(test_near),
                cmocka_unit_test(test_quiet),
                cmocka_unit_test(test_table),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
