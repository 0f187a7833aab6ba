/* What is taken of a document must not depend on where it is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/format/json_skim.h"

static const char *const of_jobs[] = {"name", "state.now", "state.flags", "n", NULL};
static const char *const of_whole[] = {"id", "meta.version", NULL};
static const struct json_skim_rows rows[] = {{"jobs", of_jobs}, {NULL, of_whole}, {NULL, NULL}};

static void on_row(void *arg, const struct json_skim_rows *r, const struct str *values)
{
        struct buf *out = arg;

        buf_addz(out, r->list ? r->list : "*");
        for (size_t i = 0; r->fields[i]; i++)
                buf_printf(out, "|" STR_FMT, STR_ARG(values[i]));
        buf_char(out, '\n');
}

/* In pieces of so many bytes. */
static int skim(struct str text, size_t piece, struct buf *out, bool *ret_done)
{
        struct json_skim s;
        int r = 0;

        json_skim_init(&s, rows, on_row, out);
        while (text.n && r == 0) {
                r = json_skim_take(&s, str_head(text, piece));
                text = str_skip(text, piece);
        }
        *ret_done = json_skim_done(&s);
        json_skim_deinit(&s);
        return r;
}

static void assert_skim(const char *text, const char *want)
{
        for (size_t piece = 1; piece < strlen(text) + 2; piece++) {
                BUF_CLEANUP struct buf out = {0};
                bool done = false;

                assert_int_equal(skim(str_of(text), piece, &out, &done), 0);
                assert_true(done);
                assert_string_equal(buf_z(&out), want);
        }
}

static void rows_are_told(void **state)
{
        (void)state;
        assert_skim("{\"meta\": {\"version\": \"x\", \"id\": 1}, \"jobs\": [\n"
                    " {\"name\": \"a\", \"deep\": {\"name\": \"b\", \"x\": [[{\"name\": 1}], 2]},\n"
                    "  \"state\": {\"now\": \"R\", \"flags\": [\"x\", \"y\"]}, \"n\": -1.5e3},\n"
                    " {}, {\"n\": null, \"name\":true}, 7, [{\"name\": \"no row\"}]],\n"
                    " \"others\": [{\"name\": \"z\"}], \"id\": 17 } \n",
                    "jobs|a|R|x,y|-1.5e3\njobs||||\njobs|true|||\n*|17|x\n");
        assert_skim("{}", "*||\n");
        assert_skim("{\"jobs\":{\"name\":\"no list\"},\"id\":false}", "*|false|\n");
}

static void texts_are_decoded(void **state)
{
        (void)state;
        assert_skim("{\"id\":\"a\\\"\\\\\\/\\n\\u0041\\u00fc\\u20ac\\ud83d\\ude00\\ud800x\"}",
                    "*|a\"\\/\nA\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbdx|\n");
        assert_skim("{\"\\u0069d\":\"\"}", "*||\n");
        assert_skim("{\"\\u0069d\":\"k\"}", "*|k|\n");
        assert_skim("{\"id\":\"\\x\\u00g0\\\\\"}", "*|x00g0\\|\n"); /* no escapes */
}

static void what_is_no_json_is_refused(void **state)
{
        static const char *const wrong[] = {"[]",           "7",         "{1}",  "{\"a\" 1}", "{\"a\":1,}",
                                            "{\"a\":[1,]}", "{\"a\":]}", "{} x", "<html>",    "{\"a\":}"};

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                BUF_CLEANUP struct buf out = {0};
                bool done;

                assert_int_equal(skim(str_of(wrong[i]), 1, &out, &done), -EINVAL);
                assert_false(done);
        }
}

static void too_much_is_bounded(void **state)
{
        BUF_CLEANUP struct buf text = {0}, out = {0};
        bool done;

        (void)state;
        buf_addz(&text, "{\"a\":");
        for (unsigned i = 0; i < JSON_SKIM_DEPTH; i++)
                buf_char(&text, '[');
        assert_int_equal(skim(buf_view(&text), 7, &out, &done), -EINVAL);
        buf_reset(&text);
        buf_addz(&text, "{\"id\":\"");
        for (unsigned i = 0; i < 3 * JSON_SKIM_VALUE; i++)
                buf_char(&text, 'x');
        buf_addz(&text, "\",\"meta\":{\"version\":2}}");
        assert_int_equal(skim(buf_view(&text), 1000, &out, &done), 0);
        assert_true(done && out.n <= JSON_SKIM_VALUE + 10);
        assert_true(str_ends(buf_view(&out), STR("|2\n")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rows_are_told),
                cmocka_unit_test(texts_are_decoded),
                cmocka_unit_test(what_is_no_json_is_refused),
                cmocka_unit_test(too_much_is_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
