#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/format/json.h"
#include "cli/terminal/view.h"

static void finds_fields(void **state)
{
        struct view v = view_of(
                STR(" {\"a\" : 1, \"b\":[true , null,{\"c\":\"x\"}], \"d\":\"q\\\"}\" , \"e\":-2.5e1}"));
        struct view list = view_get(v, "b"), item;
        struct buf b BUF_CLEANUP = {0};
        size_t at = 0;

        (void)state;
        assert_int_equal(view_type(v), VIEW_OBJECT);
        assert_int_equal(view_integer(view_get(v, "a"), -1), 1);
        assert_int_equal(view_integer(view_get(v, "e"), -1), -25);
        assert_int_equal(view_integer(view_get(v, "d"), -1), -1);
        assert_int_equal(view_type(view_get(v, "f")), VIEW_NONE);
        assert_true(view_next(list, &at, &item) && view_true(item));
        assert_true(view_next(list, &at, &item) && view_type(item) == VIEW_NULL && !view_there(item));
        assert_true(view_next(list, &at, &item) && view_is(view_get(item, "c"), "x"));
        assert_false(view_next(list, &at, &item));
        view_text(view_get(v, "d"), &b);
        assert_string_equal(buf_z(&b), "q\"}");
}

/* In any order, some missing, one there twice, and with others between them. */
static void reads_fields_in_one_walk(void **state)
{
        struct row {
                struct view a, b, c, d;
        } row = {0};
        static const struct view_field fields[] = {{{"a", 1}, offsetof(struct row, a)},
                                                   {{"b", 1}, offsetof(struct row, b)},
                                                   {{"c", 1}, offsetof(struct row, c)},
                                                   {{"d", 1}, offsetof(struct row, d)}};

        (void)state;
        view_fields(view_of(STR("{\"x\":{\"a\":7},\"c\":3,\"ab\":0,\"a\":1,\"d\":\"e\",\"c\":4,\"\":5}")),
                    fields, 4, &row);
        assert_int_equal(view_integer(row.a, -1), 1);
        assert_int_equal(view_type(row.b), VIEW_NONE);
        assert_int_equal(view_integer(row.c, -1), 4);
        assert_true(view_is(row.d, "e"));
        view_fields(view_of(STR("[1]")), fields, 4, &row); /* no object has none */
        assert_int_equal(view_integer(row.a, -1), 1);
}

static void a_long_array_is_walked_once(void **state)
{
        struct view v = view_of(STR("{\"x\":[0],\"jobs\" : [ 1, {\"a\":[2]} , 3 ] , \"next\":\"n\"}")), item,
                    value;
        struct view array = view_enter(v, "jobs");
        struct str key;
        size_t at = 0;

        (void)state;
        assert_true(view_next(array, &at, &item) && view_integer(item, 0) == 1);
        assert_true(view_next(array, &at, &item) && view_type(item) == VIEW_OBJECT);
        assert_true(view_next(array, &at, &item) && view_integer(item, 0) == 3);
        assert_false(view_next(array, &at, &item));
        at = view_leave(v, array, at);
        assert_true(view_member(v, &at, &key, &value) && str_eqz(key, "next") && view_is(value, "n"));
        assert_false(view_member(v, &at, &key, &value));
        assert_int_equal(view_type(view_enter(v, "none")), VIEW_NONE);
        v = view_of(STR("{\"jobs\":[],\"next\":null}"));
        array = view_enter(v, "jobs");
        at = 0;
        assert_false(view_next(array, &at, &item));
        at = view_leave(v, array, at);
        assert_true(view_member(v, &at, &key, &value) && str_eqz(key, "next"));
}

static void empty_ones(void **state)
{
        struct view v = view_of(STR("{\"a\":[],\"b\":{ }}")), item = {STR_NONE};
        struct str key = STR_NONE;

        (void)state;
        assert_false(view_next(view_get(v, "a"), &(size_t){0}, &item));
        assert_false(view_member(view_get(v, "b"), &(size_t){0}, &key, &item));
        assert_int_equal(view_type(view_of(STR_NONE)), VIEW_NONE);
        assert_int_equal(view_type(view_of(STR("  "))), VIEW_NONE);
}

static void reads_escapes(void **state)
{
        struct buf b BUF_CLEANUP = {0};

        (void)state;
        view_text(view_of(STR("\"\\u00e4\\n\\/\\ud83d\\ude00\\ud83dx\\u20ac\\\\\"")), &b);
        assert_string_equal(buf_z(&b), "\xc3\xa4\n/\xf0\x9f\x98\x80\xef\xbf\xbdx\xe2\x82\xac\\");
}

static void reads_what_json_writes(void **state)
{
        struct buf text BUF_CLEANUP = {0}, back BUF_CLEANUP = {0};
        struct json j = {.out = &text};
        char all[127];

        (void)state;
        for (int i = 0; i < 127; i++)
                all[i] = (char)(i + 1);
        json_str(&j, str_make(all, sizeof(all)));
        view_text(view_of(buf_view(&text)), &back);
        assert_true(str_eq(buf_view(&back), str_make(all, sizeof(all))));
}

/* Any beginning of a document, and any with one byte changed, is walked without leaving the text. */
static void walk(struct view v, unsigned depth)
{
        struct buf b BUF_CLEANUP = {0};
        struct view item;
        struct str key;
        size_t at = 0;

        view_text(v, &b);
        (void)view_integer(v, 0);
        if (depth > 20)
                return;
        while (view_next(v, &at, &item))
                walk(item, depth + 1);
        at = 0;
        while (view_next(view_enter(v, "jobs"), &at, &item))
                walk(item, depth + 1);
        at = view_leave(v, view_enter(v, "jobs"), at);
        while (view_member(v, &at, &key, &item))
                walk(item, depth + 1);
        at = 0;
        while (view_member(v, &at, &key, &item))
                walk(item, depth + 1);
}

static void broken_text(void **state)
{
        static const char good[] =
                "{\"jobs\":[{\"id\":\"7.1\",\"x\\u00e4\":[1,-2.5,true,null]},{}],\"next\":null}";
        size_t n = sizeof(good) - 1;

        (void)state;
        for (size_t cut = 0; cut <= n; cut++) {
                char *copy = mem_dup(good, cut);
                struct view v = view_of(str_make(copy, cut));

                assert_int_equal(view_type(v), cut == n ? VIEW_OBJECT : VIEW_NONE);
                walk(v, 0);
                walk(view_open(str_make(copy, cut)), 0);
                free(copy);
        }
        for (size_t i = 0; i < n; i++)
                for (const char *p = "\"{}[]\\,: x"; *p; p++) {
                        char *copy = mem_dup(good, n);

                        copy[i] = *p;
                        walk(view_of(str_make(copy, n)), 0);
                        walk(view_open(str_make(copy, n)), 0);
                        free(copy);
                }
}

static void too_deep(void **state)
{
        struct buf b BUF_CLEANUP = {0};

        (void)state;
        for (int i = 0; i < 101; i++)
                buf_char(&b, '[');
        for (int i = 0; i < 101; i++)
                buf_char(&b, ']');
        assert_int_equal(view_type(view_of(buf_view(&b))), VIEW_NONE);
        assert_int_equal(view_type(view_of(str_make(b.p + 1, 200))), VIEW_ARRAY);
}

/* Strings are looked at eight bytes at a time: of every length, and with an escape or a strange byte at every
 * place. */
static void strings_of_every_length(void **state)
{
        static const char *const inside[] = {"", "\\\"", "\\\\", "\xa2", "\xdc", "#", "[", "\x7f", "\\n"};

        (void)state;
        for (size_t k = 0; k < sizeof(inside) / sizeof(*inside); k++)
                for (size_t before = 0; before < 20; before++)
                        for (size_t after = 0; after < 20; after++) {
                                BUF_CLEANUP struct buf text = {0};
                                struct view v, first, second;
                                size_t at = 0, n;

                                buf_addz(&text, "[\"");
                                for (size_t i = 0; i < before; i++)
                                        buf_char(&text, 'x');
                                buf_addz(&text, inside[k]);
                                for (size_t i = 0; i < after; i++)
                                        buf_char(&text, 'y');
                                n = text.n;
                                buf_addz(&text, "\",2]");
                                v = view_of(buf_view(&text));
                                assert_true(view_next(v, &at, &first));
                                assert_true(view_next(v, &at, &second));
                                assert_int_equal(first.text.n, n); /* both quotes, without the bracket */
                                assert_int_equal(view_integer(second, -1), 2);
                                /* cut off anywhere it is nothing */
                                for (size_t cut = 1; cut < text.n; cut++)
                                        assert_int_equal(view_type(view_of(str_head(buf_view(&text), cut))),
                                                         VIEW_NONE);
                        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(finds_fields),
                                           cmocka_unit_test(empty_ones),
                                           cmocka_unit_test(reads_fields_in_one_walk),
                                           cmocka_unit_test(a_long_array_is_walked_once),
                                           cmocka_unit_test(reads_escapes),
                                           cmocka_unit_test(reads_what_json_writes),
                                           cmocka_unit_test(broken_text),
                                           cmocka_unit_test(too_deep),
                                           cmocka_unit_test(strings_of_every_length)};

        return cmocka_run_group_tests_name("cli view", tests, NULL, NULL);
}
