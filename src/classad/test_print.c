/* Printing, and two properties over random expressions: what is printed reads back to the same text and the
 * same value, and folding constants changes no value. The seed is printed when one fails. */
#include "classad/test_help.h"

#include "classad/expr_private.h"

static void check_print(const char *text, const char *expect)
{
        struct symbols *s = symbols_new();
        struct expr *e;
        struct buf out BUF_CLEANUP = {0};

        assert_int_equal(expr_parse(s, str_of(text), &e, NULL), 0);
        expr_print(&out, e, s);
        assert_string_equal(buf_z(&out), expect);
        expr_free(e);
        symbols_free(s);
}

static void test_expressions(void **state)
{
        (void)state;
        check_print("1+2*3", "1 + 2 * 3");
        check_print("( 1 + 2 )*3", "(1 + 2) * 3");
        check_print("((a))", "((a))");
        check_print("a&&(b&&c)||d", "a && b && c || d");
        check_print("(a||b)&&c", "(a || b) && c");
        check_print("a?b:c?d:e", "a ? b : c ? d : e");
        check_print("(a?b:c)?d:e", "(a ? b : c) ? d : e");
        check_print("-1", "-1");
        check_print("1 .a", "1 .a");
        check_print("a.b.c", "a.b.c");
        check_print("- 1 - -1", "-1 - -1");
        check_print("!a.b[3].c", "!a.b[3].c");
        check_print("my.x+target.y+other.z+.w", "MY.x + TARGET.y + TARGET.z + .w");
        check_print("a is b", "a =?= b");
        check_print("F(1,{},[])", "F(1,{  },[  ])");
        check_print("'odd name'+'true'+'plain'", "'odd name' + 'true' + plain");
        check_print("'it\\'s'", "'it\\'s'");
        check_print("undefined?:1", "undefined ?: 1");
        check_print("2*1024", "2 * 1024"); /* folded, but printed as written */
        check_print("(2*1024)+x", "(2 * 1024) + x");
        check_print("\"\\001\\177\"", "\"\\001\\177\"");
}

static void test_ads(void **state)
{
        struct world w;

        (void)state;
        world_init(&w,
                   "[ b = \"q\\\"\\\\\"; A = 1; c = x + 1; l = { 1, x }; n = [ y = 2 ]; u = undefined; r = "
                   "0.5; t = true ]",
                   NULL);
        ad_print(&w.out, w.my, CLASSAD_OLD, false);
        assert_string_equal(buf_z(&w.out), "A = 1\nb = \"q\\\"\\\"\nc = x + 1\nl = { 1,x }\nn = [ y = 2 ]\n"
                                           "r = 5.000000000000000E-01\nt = true\nu = undefined\n");
        buf_reset(&w.out);
        ad_print_json(&w.out, w.my, false);
        assert_string_equal(
                buf_z(&w.out),
                "{\"b\":\"q\\\"\\\\\",\"A\":1,\"c\":\"\\/Expr(x + 1)\\/\",\"l\":[1,\"\\/Expr(x)\\/\"],"
                "\"n\":{\"y\":2},\"u\":null,\"r\":0.5,\"t\":true}");
        world_deinit(&w);
}

/* ---- random expressions */

static uint64_t next(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return *state >> 33;
}

static void leaf(uint64_t *seed, struct buf *out)
{
        static const char *const leaves[] = {"0",          "1",           "2",         "7",
                                             "-3",         "true",        "false",     "undefined",
                                             "error",      "0.5",         "2.0",       "\"a\"",
                                             "\"A\"",      "\"b c\"",     "a",         "b",
                                             "MY.c",       "TARGET.d",    "d",         "9223372036854775807",
                                             "absTime(5)", "relTime(60)", "{ 1,a }",   "[ p = a; q = 2 ]",
                                             ".a",         "nosuch",      "'odd name'"};

        buf_addz(out, leaves[next(seed) % (sizeof(leaves) / sizeof(*leaves))]);
}

static void grow(uint64_t *seed, struct buf *out, int depth)
{
        static const char *const binary[] = {" + ", " - ",  " * ",  " / ",  " % ",  " << ", " >> ",  " >>> ",
                                             " < ", " <= ", " >= ", " > ",  " == ", " != ", " =?= ", " =!= ",
                                             " & ", " ^ ",  " | ",  " && ", " || ", " ?: "};
        static const char *const unary[] = {"!", "-", "~", "+"};
        static const char *const calls[] = {"isUndefined(", "isError(", "strcat(",
                                            "size(",        "int(",     "string("};
        unsigned way = (unsigned)(next(seed) % 16);

        if (depth == 0 || way == 0) {
                leaf(seed, out);
        } else if (way < 10) {
                grow(seed, out, depth - 1);
                buf_addz(out, binary[next(seed) % (sizeof(binary) / sizeof(*binary))]);
                grow(seed, out, depth - 1);
        } else if (way < 12) {
                buf_addz(out, unary[next(seed) % 4]);
                grow(seed, out, depth - 1);
        } else if (way == 12) {
                buf_char(out, '(');
                grow(seed, out, depth - 1);
                buf_addz(out, next(seed) % 3 ? ")" : ")[1]");
        } else if (way == 13) {
                buf_addz(out, calls[next(seed) % 6]);
                grow(seed, out, depth - 1);
                buf_char(out, ')');
        } else if (way == 14) {
                grow(seed, out, depth - 1);
                buf_addz(out, " ? ");
                grow(seed, out, depth - 1);
                buf_addz(out, " : ");
                grow(seed, out, depth - 1);
        } else {
                buf_addz(out, next(seed) % 2 ? "{ " : "[ p = ");
                bool list = out->p[out->n - 2] == '{';
                grow(seed, out, depth - 1);
                buf_addz(out, list ? " }[0]" : " ].p");
        }
}

static void value_of(struct world *w, const struct expr *e, struct buf *out)
{
        struct value v;

        buf_reset(out);
        eval_expr(&w->ev, e, w->my, w->target, &v);
        value_print(out, &v);
        eval_reset(&w->ev);
}

static void check_one(struct world *w, uint64_t seed)
{
        struct buf text BUF_CLEANUP = {0}, once BUF_CLEANUP = {0}, again BUF_CLEANUP = {0};
        struct buf value BUF_CLEANUP = {0}, other BUF_CLEANUP = {0};
        uint64_t state = seed;
        struct expr *folded, *plain, *printed;

        grow(&state, &text, 4);
        assert_int_equal(expr_parse(w->symbols, buf_view(&text), &folded, NULL), 0);
        assert_int_equal(expr_parse_as(w->symbols, buf_view(&text), false, &plain, NULL), 0);
        expr_print(&once, folded, w->symbols);
        if (expr_parse(w->symbols, buf_view(&once), &printed, NULL) != 0)
                fail_msg("seed %llu: %s was printed from %s", (unsigned long long)seed, buf_z(&once),
                         buf_z(&text));
        expr_print(&again, printed, w->symbols);
        if (!str_eq(buf_view(&once), buf_view(&again)))
                fail_msg("seed %llu: %s prints as %s", (unsigned long long)seed, buf_z(&once), buf_z(&again));
        value_of(w, folded, &value);
        value_of(w, plain, &other);
        if (!str_eq(buf_view(&value), buf_view(&other)))
                fail_msg("seed %llu: %s is %s, but %s without folding", (unsigned long long)seed,
                         buf_z(&text), buf_z(&value), buf_z(&other));
        value_of(w, printed, &other);
        if (!str_eq(buf_view(&value), buf_view(&other)))
                fail_msg("seed %llu: %s is %s, but printed %s is %s", (unsigned long long)seed, buf_z(&text),
                         buf_z(&value), buf_z(&once), buf_z(&other));
        expr_free(folded);
        expr_free(plain);
        expr_free(printed);
}

static void test_properties(void **state)
{
        struct world w;

        (void)state;
        world_init(&w, "[ a = 5; b = \"a\"; c = a * 2; 'odd name' = true ]", "[ d = c + 1; a = 6 ]");
        for (uint64_t seed = 1; seed <= 20000; seed++)
                check_one(&w, seed * 0x9e3779b97f4a7c15u);
        world_deinit(&w);
}

/* Two ads of one table, whose authors wrote the names in their own ways. */
static void test_spelling(void **state)
{
        static const char text[] = "[ DEEPfield = Deepfield + MY.deepField + .DEEP; l = StrCat(\"a\"); s = [ "
                                   "Sub = 1; deep = 2 ].DEEP; "
                                   "'odd Name' = 'ODD name' ]";
        struct world w;
        struct ad *copy;
        symbol deep;

        (void)state;
        world_init(&w, "[ deepField = 1; SUB = 2; Deep = 3; L = 4; 'Odd name' = 5; S = 6; strCAT = 7 ]",
                   text);
        ad_print(&w.out, w.target, CLASSAD_NEW, false);
        assert_string_equal(buf_z(&w.out), text);
        copy = ad_dup(w.target);
        deep = world_symbol(&w, "deepfield");
        ad_set_integer(copy, deep, 7); /* another value has the same name */
        ad_set_expr(copy, world_symbol(&w, "n"), ad_find(w.target, world_symbol(&w, "S")));
        for (int i = 0; i < 200; i++) /* the code is written anew on the way */
                ad_set_string(copy, world_symbol(&w, "filler"), STR("0123456789012345"));
        ad_remove(copy, world_symbol(&w, "filler"));
        ad_remove(copy, world_symbol(&w, "l"));
        buf_reset(&w.out);
        ad_print_json(&w.out, copy, false);
        assert_string_equal(buf_z(&w.out),
                            "{\"DEEPfield\":7,\"s\":\"\\/Expr([ Sub = 1; deep = 2 ].DEEP)\\/\","
                            "\"odd Name\":\"\\/Expr('ODD name')\\/\","
                            "\"n\":\"\\/Expr([ Sub = 1; deep = 2 ].DEEP)\\/\"}");
        ad_free(copy);
        assert_int_equal(ad_spelling(w.my, deep), 0);
        copy = ad_new(w.symbols);
        ad_set_parent(copy, w.target);
        assert_int_equal(ad_spelling(copy, deep), symbols_spelling(w.symbols, deep, STR("DEEPfield")));
        ad_set_integer(copy, deep, 1);
        ad_set_spelling(copy, deep, symbols_spelling(w.symbols, deep, STR("deepfielD")));
        buf_reset(&w.out);
        ad_print_xml(&w.out, copy, false);
        assert_string_equal(buf_z(&w.out), "<c>\n    <a n=\"deepfielD\"><i>1</i></a>\n</c>\n");
        ad_free(copy);
        world_deinit(&w);
}

/* A name has as many spellings as ads write, whatever its length. */
static void test_spelling_of_long_names(void **state)
{
        static const char *const texts[] = {
                "[ A_name_of_thirty_two_letters_oK_AND_MORE = a_Name_of_thirty_two_letters_ok_and_more ]",
                "[ A_name_of_thirty_two_letters_oK_and_more = MY.a_name_of_thirty_two_letters_ok_AND_MORE ]",
                "[ a_name_of_thirty_two_letters_ok_and_more = [ A = 1 "
                "].a_name_of_thirty_two_letters_ok_and_morE ]",
                "[ 'a_name_of_thirty_two_letters_ok AND MORE' = .a_name_of_thirty_two_letters_ok_AND_more ]",
        };
        struct world w;
        struct ad *ad[4], *copy;
        uint32_t count;

        (void)state;
        world_init(&w, "[ a_name_of_thirty_two_letters_ok_AND_MORE = 1 ]", "[ ]");
        for (int i = 0; i < 4; i++)
                assert_int_equal(ad_parse(w.symbols, str_of(texts[i]), CLASSAD_NEW, &ad[i], NULL), 0);
        count = symbols_count(w.symbols);
        for (int i = 0; i < 4; i++) {
                buf_reset(&w.out);
                ad_print(&w.out, ad[i], CLASSAD_NEW, false);
                assert_string_equal(buf_z(&w.out), texts[i]);
                copy = ad_dup(ad[i]);
                ad_free(ad[i]);
                assert_int_equal(ad_parse(w.symbols, str_of(texts[i]), CLASSAD_NEW, &ad[i], NULL), 0);
                buf_reset(&w.out);
                ad_print(&w.out, copy, CLASSAD_NEW, false);
                assert_string_equal(buf_z(&w.out), texts[i]);
                ad_free(copy);
                assert_int_equal(ad_count(ad[i]), 1);
        }
        assert_int_equal(symbols_count(w.symbols), count); /* nothing is added twice */
        buf_reset(&w.out);
        ad_print_json(&w.out, ad[1], false);
        assert_string_equal(buf_z(&w.out), "{\"A_name_of_thirty_two_letters_oK_and_more\":"
                                           "\"\\/Expr(MY.a_name_of_thirty_two_letters_ok_AND_MORE)\\/\"}");
        buf_reset(&w.out);
        ad_print_xml(&w.out, ad[2], false);
        assert_non_null(strstr(buf_z(&w.out), "<a n=\"a_name_of_thirty_two_letters_ok_and_more\">"));
        for (int i = 0; i < 4; i++)
                ad_free(ad[i]);
        world_deinit(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_expressions),
                cmocka_unit_test(test_ads),
                cmocka_unit_test(test_properties),
                cmocka_unit_test(test_spelling),
                cmocka_unit_test(test_spelling_of_long_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
