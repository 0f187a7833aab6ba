/* What does not parse, where errors are said to be, the limits, and the old syntax. */
#include "classad/test_help.h"

static void check_error(const char *text, enum classad_syntax syntax, int code, const char *where)
{
        struct symbols *s = symbols_new();
        struct ad *ad = NULL;
        struct err err = {{0}};
        int r = ad_parse(s, str_of(text), syntax, &ad, &err);

        if (r != code || !strstr(err.text, where))
                fail_msg("%s: gives %d, %s", text, r, err.text);
        assert_null(ad);
        symbols_free(s);
}

static void test_errors(void **state)
{
        (void)state;
        check_error("[ a = 1", CLASSAD_ANY, CLASSAD_SYNTAX, "line 1, column 8");
        check_error("[ a = 1;\n b = ]", CLASSAD_ANY, CLASSAD_SYNTAX, "line 2, column 6: ']'");
        check_error("[ a = 1 ] x", CLASSAD_NEW, CLASSAD_SYNTAX, "column 11");
        check_error("a = 1", CLASSAD_NEW, CLASSAD_SYNTAX, "'['");
        check_error("[ 5 = 1 ]", CLASSAD_NEW, CLASSAD_SYNTAX, "name");
        check_error("[ a = 1 b = 2 ]", CLASSAD_NEW, CLASSAD_SYNTAX, "';'");
        check_error("[ a = (1 ]", CLASSAD_NEW, CLASSAD_SYNTAX, "')'");
        check_error("[ a = {1 ]", CLASSAD_NEW, CLASSAD_SYNTAX, "'}'");
        check_error("[ a = f(1 ]", CLASSAD_NEW, CLASSAD_SYNTAX, "')'");
        check_error("[ a = b ? 1 ]", CLASSAD_NEW, CLASSAD_SYNTAX, "':'");
        check_error("[ a = x.5 ]", CLASSAD_NEW, CLASSAD_SYNTAX, "");
        check_error("[ a = \"no end ]", CLASSAD_NEW, CLASSAD_SYNTAX, "does not end");
        check_error("[ a = 1 @ 2 ]", CLASSAD_NEW, CLASSAD_SYNTAX, "no meaning");
        check_error("", CLASSAD_NEW, CLASSAD_SYNTAX, "ends");
        check_error("a = 1\nb == 2\n", CLASSAD_OLD, CLASSAD_SYNTAX, "line 2");
        check_error("a = 1\nb = 2 3\n", CLASSAD_ANY, CLASSAD_SYNTAX, "line 2, column 7");
        check_error("a\n", CLASSAD_OLD, CLASSAD_SYNTAX, "line 1");
        check_error("a = \n", CLASSAD_OLD, CLASSAD_SYNTAX, "line 1");
}

static void nested(struct buf *out, const char *open, const char *middle, const char *close, int n)
{
        buf_reset(out);
        for (int i = 0; i < n; i++)
                buf_addz(out, open);
        buf_addz(out, middle);
        for (int i = 0; i < n; i++)
                buf_addz(out, close);
}

static int parse_code(const struct buf *text)
{
        struct symbols *s = symbols_new();
        struct expr *e;
        int r = expr_parse(s, buf_view(text), &e, NULL);

        if (r == 0)
                expr_free(e);
        symbols_free(s);
        return r;
}

static void test_depth(void **state)
{
        static const char *const ways[][3] = {{"(", "1", ")"},   {"{", "1", "}"},    {"[a=", "1", "]"},
                                              {"f(", "1", ")"},  {"!", "x", ""},     {"x ? 1 : ", "2", ""},
                                              {"x[", "0", "]"},  {"x ?: ", "1", ""}, {"", "x", "[1]"},
                                              {"", "x", ".a"},   {"", "1", " + x"},  {"", "x", " * 2"},
                                              {"", "1", " == x"}};
        struct buf text BUF_CLEANUP = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
                nested(&text, ways[i][0], ways[i][1], ways[i][2], 390);
                assert_int_equal(parse_code(&text), 0);
                nested(&text, ways[i][0], ways[i][1], ways[i][2], 410);
                assert_int_equal(parse_code(&text), CLASSAD_TOO_DEEP);
                nested(&text, ways[i][0], ways[i][1], ways[i][2], 100000);
                assert_int_equal(parse_code(&text), CLASSAD_TOO_DEEP);
        }
        /* a condition that is taken into another one is as deep as it was */
        nested(&text, "", "((x", " * 2", 250);
        buf_addz(&text, " && y) && z)");
        for (int i = 0; i < 250; i++)
                buf_addz(&text, " * 2");
        assert_int_equal(parse_code(&text), CLASSAD_TOO_DEEP);
        nested(&text, "", "x", " && x", 10000); /* conditions may be long */
        assert_int_equal(parse_code(&text), 0);
        nested(&text, "", "x", " || y", 10000);
        assert_int_equal(parse_code(&text), 0);
}

/* Parentheses around a long condition add to it what they are, not a copy of it each. */
static void test_conditions_within(void **state)
{
        static const char *const ways[][2] = {{"(", ") && x"}, {"(", ") || x"}};
        struct symbols *s = symbols_new();
        struct buf text BUF_CLEANUP = {0}, middle BUF_CLEANUP = {0};
        struct expr *e;

        (void)state;
        for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
                struct ad *ad = ad_new(s);
                symbol a = symbols_intern(s, STR("a"));

                nested(&middle, "", "x", ways[i][1] + 1, 10000);
                nested(&text, ways[i][0], buf_z(&middle), ways[i][1], 390);
                assert_int_equal(ad_set_text(ad, a, buf_view(&text), NULL), 0);
                assert_true(ad_bytes(ad) < 32 * text.n);
                ad_free(ad);
        }
        nested(&text, "(", "x", " && x)", 40); /* what people write is one condition */
        assert_int_equal(expr_parse(s, buf_view(&text), &e, NULL), 0);
        assert_int_equal(expr_clause_count(e), 41);
        expr_free(e);
        symbols_free(s);
}

static void test_too_long(void **state)
{
        struct buf text BUF_CLEANUP = {0};

        (void)state;
        memset(buf_room(&text, CLASSAD_TEXT_MAX + 1), ' ', CLASSAD_TEXT_MAX + 1);
        text.n = CLASSAD_TEXT_MAX + 1;
        text.p[0] = '1';
        assert_int_equal(parse_code(&text), CLASSAD_TOO_BIG);
        text.n--;
        assert_int_equal(parse_code(&text), 0);
}

static void check_ad(const char *text, enum classad_syntax syntax, const char *expect)
{
        struct symbols *s = symbols_new();
        struct ad *ad;
        struct buf out BUF_CLEANUP = {0};
        struct err err = {{0}};

        if (ad_parse(s, str_of(text), syntax, &ad, &err) != 0)
                fail_msg("%s: %s", text, err.text);
        ad_print(&out, ad, CLASSAD_NEW, false);
        assert_string_equal(buf_z(&out), expect);
        ad_free(ad);
        symbols_free(s);
}

static void test_new_syntax(void **state)
{
        (void)state;
        check_ad("[]", CLASSAD_ANY, "[  ]");
        check_ad("  /* x */ [ a = 1; ]", CLASSAD_ANY, "[ a = 1 ]");
        check_ad("[;a=1;;b=2;]", CLASSAD_NEW, "[ a = 1; b = 2 ]");
        check_ad("[ a = 1; // one\n 'b c' = 2 ]", CLASSAD_NEW, "[ a = 1; 'b c' = 2 ]");
        check_ad("[ a = 1; b = 2; A = 3 ]", CLASSAD_NEW, "[ a = 3; b = 2 ]");
        check_ad("[ n = [ x = 1; X = 2 ] ]", CLASSAD_NEW, "[ n = [ x = 2 ] ]");
}

static void test_old_syntax(void **state)
{
        (void)state;
        check_ad("", CLASSAD_ANY, "[  ]");
        check_ad("a = 1\nb = a + 1\n", CLASSAD_ANY, "[ a = 1; b = a + 1 ]");
        check_ad("# comment\n\n  a = 1  \r\n\t# more\nb=\"x\"", CLASSAD_ANY, "[ a = 1; b = \"x\" ]");
        check_ad("a = 1\nA = 2", CLASSAD_OLD, "[ a = 2 ]");
        check_ad("l = { 1, 2 }\nn = [ x = 1; y = 2 ]", CLASSAD_OLD, "[ l = { 1,2 }; n = [ x = 1; y = 2 ] ]");
        /* a backslash escapes only a double quote */
        check_ad("a = \"C:\\new\\table\"", CLASSAD_OLD, "[ a = \"C:\\\\new\\\\table\" ]");
        check_ad("a = \"say \\\"hi\\\" now\"", CLASSAD_OLD, "[ a = \"say \\\"hi\\\" now\" ]");
        check_ad("a = \"C:\\dir\\\"\nb = 1", CLASSAD_OLD, "[ a = \"C:\\\\dir\\\\\"; b = 1 ]");
        check_ad("a = \"\\n\\101\"", CLASSAD_OLD, "[ a = \"\\\\n\\\\101\" ]");
        /* integers with a leading zero, and comments of the new syntax, do not parse */
        check_ad("a = 0\nb = 0.5", CLASSAD_OLD, "[ a = 0; b = 5.000000000000000E-01 ]");
        check_error("a = 017", CLASSAD_OLD, CLASSAD_SYNTAX, "leading zero");
        check_error("a = 0x1F", CLASSAD_OLD, CLASSAD_SYNTAX, "leading zero");
        check_error("a = 1 // one", CLASSAD_OLD, CLASSAD_SYNTAX, "");
        check_error("a = 1 # one", CLASSAD_OLD, CLASSAD_SYNTAX, "");
        check_error("a = (1 +\n2)", CLASSAD_OLD, CLASSAD_SYNTAX, "line 1");
        check_error("a = \"x\ny\"", CLASSAD_OLD, CLASSAD_SYNTAX, "line 1");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_errors),     cmocka_unit_test(test_conditions_within),
                cmocka_unit_test(test_depth),      cmocka_unit_test(test_too_long),
                cmocka_unit_test(test_new_syntax), cmocka_unit_test(test_old_syntax),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
