/* The language, sentence by sentence: values and words, operators, scope. Each table is one paragraph of what
 * an implementation must respect; functions are in test_functions.c, old-syntax lines in test_parse.c. */
#include "classad/test_help.h"

static void test_words(void **state)
{
        (void)state;
        check_rows(ROWS({"TRUE", "true"}, {"False", "false"}, {"UnDefined", "undefined"}, {"ERROR", "error"},
                        {"1 IS 1", "true"}, {"1 isnt 1", "false"}, {"aB =?= Ab", "true"}, {"'a b'", "7"},
                        {"'a b' + 1", "8"}, {"\"a b\"", "\"a b\""}, {"'MY'.x", "3"}, {"'x'", "3"}, {"X", "3"},
                        {"''", "syntax"}, {"'true'", "9"}, {"true = 1", "syntax"}, {"is", "syntax"},
                        {"[ error = 1 ]", "syntax"}, {"[ a = 1; A = 2; a = 3 ].A", "3"}),
                   "[ x = 3; 'a b' = 7; 'true' = 9; ab = 1 ]", NULL);
}

static void test_special_names(void **state)
{
        (void)state;
        check_rows(ROWS({"self.x", "3"}, {"my.x", "3"}, {"MY.X", "3"}, {"parent", "undefined"},
                        {"inner.up", "3"}, {"target.y", "4"}, {"TARGET.Y", "4"}, {"other.y", "4"},
                        {"target.x", "undefined"}, {"my.y", "undefined"}, {"CurrentTime", "1700000000"},
                        {"currenttime - 1", "1699999999"}, {"isClassAd(target)", "true"},
                        {"isClassAd(my)", "true"}, {"inner.own", "8"}),
                   "[ x = 3; inner = [ x = 8; up = parent.x; top = root.x; own = self.x ] ]", "[ y = 4 ]");
        check_rows(ROWS({"root.x", "3"}, {"toplevel.x", "3"}, {".x", "3"}, {"inner.top", "3"},
                        {"inner.absolute", "3"}, {"inner.root.x", "3"}),
                   "[ x = 3; inner = [ x = 8; top = root.x; absolute = .x ] ]", NULL);
        /* In a match the outermost ad is that of the match. */
        check_rows(ROWS({"root.x", "undefined"}, {".x", "undefined"}, {"inner.top", "undefined"},
                        {"inner.toplevel.x", "undefined"}, {"TARGET.y", "undefined"}),
                   "[ x = 3; inner = [ x = 8; top = root.x ] ]", "[ x = 4; y = .x ]");
}

static void test_comments(void **state)
{
        (void)state;
        check_rows(ROWS({"1 /* two */ + 2", "3"}, {"1 // two\n + 2", "3"}, {"/* a\nb */ 1", "1"},
                        {"1 # two", "syntax"}, {"/* 1", "syntax"}, {"1 /", "syntax"}),
                   NULL, NULL);
}

static void test_numbers(void **state)
{
        (void)state;
        check_rows(
                ROWS({".5", "5.000000000000000E-01"}, {"1e3", "1.000000000000000E+03"},
                     {"1.5E-3", "1.500000000000000E-03"}, {"5.", "syntax"}, {"5.e1", "syntax"}, {"0x1F", "0"},
                     {"0x", "syntax"}, {"017", "17"}, {"08", "syntax"}, {"019", "syntax"}, {"0", "0"},
                     {"0.5e1", "5.000000000000000E+00"}, {"9223372036854775807", "9223372036854775807"},
                     {"9223372036854775808", "-9223372036854775808"}, {"18446744073709551617", "1"},
                     {"-9223372036854775808", "-9223372036854775808"},
                     {"9223372036854775807 + 1", "-9223372036854775808"},
                     {"-9223372036854775808 - 1", "9223372036854775807"}, {"9223372036854775807 * 2", "-2"},
                     {"12a", "syntax"}, {"1e", "syntax"}, {"1.5.2", "syntax"}),
                NULL, NULL);
}

static void test_strings(void **state)
{
        (void)state;
        check_rows(ROWS({"\"\\b\\t\\n\\f\\r\\\\\\\"\\'\"", "\"\\b\\t\\n\\f\\r\\\\\\\"'\""},
                        {"\"\\101\\060\"", "\"A0\""}, {"\"\\x41\"", "\"x41\""},
                        {"\"\\a\\v\"", "\"\\007\\013\""}, {"\"open", "syntax"}, {"\"\\", "syntax"},
                        {"\"\\0\"", "syntax"}, {"\"a\" \"b\"", "\"ab\""}, {"size(\"\\n\")", "1"},
                        {"\"\\477\"", "\"'7\""}, {"\"\"", "\"\""},
                        {"size(\"a longer text than fits\")", "23"}),
                   NULL, NULL);
}

static void test_reals_print(void **state)
{
        (void)state;
        check_rows(ROWS({"1.0", "1.000000000000000E+00"}, {"string(1.0)", "\"1.000000000000000E+00\""},
                        {"strcat(0.25)", "\"2.500000000000000E-01\""}, {"real(\"INF\")", "real(\"INF\")"},
                        {"real(\"-INF\")", "real(\"-INF\")"}, {"real(\"NaN\")", "real(\"NaN\")"},
                        {"-0.0", "-0.0"}),
                   NULL, NULL);
}

/* Tightest first, each against its neighbour. */
static void test_precedence(void **state)
{
        (void)state;
        check_rows(ROWS({"{1,2}[1] + [a = 3].a", "5"}, {"1 ?: 2 + 3", "4"}, {"undefined ?: 2 + 3", "5"},
                        {"-undefined ?: 2", "-2"}, {"!undefined ?: true", "false"},
                        {"undefined ?: undefined ?: 4", "4"}, {"undefined ?: {5}[0]", "5"},
                        {"undefined ?: -1", "-1"}, {"-2 * 3", "-6"}, {"!true == false", "true"},
                        {"~1 + 1", "-1"}, {"2 + 3 * 4", "14"}, {"20 - 5 - 3", "12"}, {"100 / 5 / 2", "10"},
                        {"7 % 4 * 2", "6"}, {"1 << 2 + 1", "8"}, {"16 >> 1 < 9", "true"},
                        {"-1 >>> 63 == 1", "true"}, {"1 < 2 == true", "true"}, {"3 > 2 != false", "true"},
                        {"1 <= 1 && 2 >= 2", "true"}, {"1 == 1 & 1 == 1", "error"}, {"1 & 1 == 1", "error"},
                        {"6 & 3 ^ 1", "3"}, {"1 | 6 ^ 6", "1"}, {"1 | 2 && 0", "false"},
                        {"true || false && false", "true"}, {"false || true ? 1 : 2", "1"},
                        {"true ? 1 : false ? 2 : 3", "1"}, {"false ? 1 : false ? 2 : 3", "3"},
                        {"(1 + 2) * 3", "9"}, {"true ? false ? 1 : 2 : 3", "2"}, {"- - 3", "3"},
                        {"2 - -1", "3"}),
                   NULL, NULL);
}

static void test_strict(void **state)
{
        static const char *const binary[] = {"+",  "-",  "*", "/",  "%",  "<<", ">>", ">>>", "<",
                                             "<=", ">=", ">", "==", "!=", "&",  "^",  "|"};
        struct world w;
        char text[64];

        (void)state;
        world_init(&w, NULL, NULL);
        for (size_t i = 0; i < sizeof(binary) / sizeof(*binary); i++) {
                const char *const sides[][3] = {{"error", "1", "error"},
                                                {"1", "error", "error"},
                                                {"error", "undefined", "error"},
                                                {"undefined", "error", "error"},
                                                {"undefined", "1", "undefined"},
                                                {"1", "undefined", "undefined"},
                                                {"undefined", "\"a\"", "undefined"}};

                for (size_t k = 0; k < sizeof(sides) / sizeof(*sides); k++) {
                        snprintf(text, sizeof(text), "%s %s %s", sides[k][0], binary[i], sides[k][1]);
                        world_check(&w, text, sides[k][2]);
                }
        }
        world_deinit(&w);
        check_rows(ROWS({"-undefined", "undefined"}, {"+error", "error"}, {"!undefined", "undefined"},
                        {"~error", "error"}, {"undefined[0]", "undefined"}, {"{1}[undefined]", "undefined"},
                        {"error[0]", "error"}, {"{1}[error]", "error"}, {"error.a", "error"}),
                   NULL, NULL);
}

static void test_comparison(void **state)
{
        (void)state;
        check_rows(ROWS({"\"abc\" == \"ABC\"", "true"}, {"\"a\" < \"B\"", "true"}, {"\"b\" >= \"A\"", "true"},
                        {"\"a\" != \"A\"", "false"}, {"1 == 1.0", "true"}, {"true == 1", "true"},
                        {"1 == true", "true"}, {"false < 0.5", "true"}, {"\"1\" == 1", "error"},
                        {"1 < \"a\"", "error"}, {"true == \"true\"", "error"}, {"{1} == {1}", "error"},
                        {"[a=1] == 1", "error"}, {"1 < 2", "true"}, {"2 <= 1", "false"},
                        {"real(\"NaN\") == real(\"NaN\")", "false"}, {"real(\"NaN\") != 1", "true"},
                        {"absTime(5) < absTime(6)", "true"}, {"relTime(5) >= relTime(5)", "true"},
                        {"absTime(5) == 5", "error"}),
                   NULL, NULL);
}

static void test_identity(void **state)
{
        (void)state;
        check_rows(ROWS({"\"a\" =?= \"a\"", "true"}, {"\"a\" =?= \"A\"", "false"},
                        {"\"a\" =!= \"A\"", "true"}, {"1.0 =?= 1", "false"}, {"1 =?= true", "false"},
                        {"1 =?= 1", "true"}, {"1 =!= 2", "true"}, {"undefined =?= undefined", "true"},
                        {"undefined =!= undefined", "false"}, {"error =?= error", "true"},
                        {"undefined =?= error", "false"}, {"undefined =?= 1", "false"},
                        {"nosuch is undefined", "true"}, {"1 isnt undefined", "true"},
                        {"{1} =?= {1}", "error"}, {"[a=1] =!= [a=1]", "error"}, {"[a=1] =?= [a=1]", "error"},
                        {"{1} =?= 1", "false"}, {"{1} =?= undefined", "false"}, {"undefined =!= {}", "true"},
                        {"[a=1] =?= undefined", "false"}, {"[a=1] =!= {1}", "true"},
                        {"{1} =?= error", "false"}, {"2.5 =?= 2.5", "true"},
                        {"absTime(5) =?= absTime(5)", "true"}, {"absTime(5) =?= 5", "false"}),
                   NULL, NULL);
}

static void test_logic(void **state)
{
        (void)state;
        check_rows(ROWS({"false && error", "false"}, {"error && false", "error"}, {"true || error", "true"},
                        {"error || true", "error"}, {"undefined && false", "false"},
                        {"undefined || true", "true"}, {"undefined && error", "error"},
                        {"undefined || error", "error"}, {"undefined && true", "undefined"},
                        {"undefined || false", "undefined"}, {"true && undefined", "undefined"},
                        {"false && undefined", "false"}, {"false || undefined", "undefined"},
                        {"true && error", "error"}, {"false || error", "error"}, {"1 && 2", "true"},
                        {"0 || 0.0", "false"}, {"1.5 && true", "true"}, {"\"a\" && true", "error"},
                        {"true && \"a\"", "error"}, {"false || \"a\"", "error"}, {"{1} && true", "error"},
                        {"!0", "true"}, {"!2.5", "false"}, {"!\"a\"", "error"}, {"!{1}", "error"},
                        {"undefined && undefined && false && error", "false"},
                        {"true && (undefined && false)", "false"}, {"undefined || (error || true)", "error"}),
                   NULL, NULL);
}

static void test_ternary(void **state)
{
        (void)state;
        check_rows(ROWS({"true ? 1 : 1/0", "1"}, {"false ? error : 2", "2"},
                        {"undefined ? 1 : 2", "undefined"}, {"error ? 1 : 2", "error"},
                        {"\"a\" ? 1 : 2", "error"}, {"1 ? 2 : 3", "2"}, {"0.0 ? 2 : 3", "3"},
                        {"{1} ? 1 : 2", "error"}, {"a ? loop : 3", "3"}),
                   "[ a = false; loop = loop + 1 ]", NULL);
}

static void test_elvis(void **state)
{
        (void)state;
        check_rows(ROWS({"5 ?: 6", "5"}, {"x ?: 6", "6"}, {"error ?: 6", "error"}, {"false ?: 6", "false"},
                        {"x ?: error", "error"}),
                   NULL, NULL);
}

static void test_arithmetic(void **state)
{
        (void)state;
        check_rows(
                ROWS({"true + 1", "2"}, {"true + true", "2"}, {"-true", "error"}, {"+true", "error"},
                     {"+5", "5"}, {"1/0", "error"}, {"1%0", "error"}, {"1.0/0", "error"},
                     {"0.0/0", "real(\"NaN\")"}, {"-1.0/0", "real(\"-INF\")"}, {"1/-0.0", "real(\"-INF\")"},
                     {"-1e308 * 10", "real(\"-INF\")"}, {"real(\"INF\") + 1", "error"}, {"5.5 % 2", "error"},
                     {"5 % 2.0", "error"}, {"1e308 * 10", "error"}, {"1e308 + 1e308", "error"},
                     {"-9223372036854775808 / -1", "9223372036854775807"}, {"-9223372036854775808 % -1", "0"},
                     {"7 / 2", "3"}, {"-7 / 2", "-3"}, {"-7 % 2", "-1"}, {"7 / 2.0", "3.500000000000000E+00"},
                     {"\"a\" + 1", "error"}, {"{1} + 1", "error"}, {"-\"a\"", "error"},
                     {"-1 >>> 1", "9223372036854775807"}, {"-8 >> 1", "-4"},
                     {"1 << 62", "4611686018427387904"}, {"6 & 3", "2"}, {"6 | 3", "7"}, {"6 ^ 3", "5"},
                     {"~0", "-1"}, {"1.5 & 1", "error"}, {"true & false", "error"}, {"true | 1", "error"},
                     {"~true", "error"}, {"1 << true", "error"}, {"-8 >> 64", "-1"}, {"-8 >> 63", "-1"},
                     {"-8 >> -1", "-8"}, {"8 >> 65", "4"}, {"\"a\" | 1", "error"}, {"~1.5", "error"}),
                NULL, NULL);
}

static void test_times(void **state)
{
        (void)state;
        check_rows(ROWS({"absTime(100) - absTime(40)", "relTime(\"01:00\")"},
                        {"absTime(0) + relTime(60)", "absTime(\"1970-01-01T00:01:00-00:00\")"},
                        {"relTime(60) + absTime(0)", "absTime(\"1970-01-01T00:01:00-00:00\")"},
                        {"absTime(60) - relTime(60)", "absTime(\"1970-01-01T00:00:00-00:00\")"},
                        {"relTime(60) + relTime(1)", "relTime(\"01:01\")"},
                        {"relTime(60) * 2", "relTime(\"02:00\")"}, {"absTime(0) + absTime(0)", "error"},
                        {"-relTime(5)", "relTime(\"-05\")"}, {"relTime(5) - absTime(0)", "error"}),
                   NULL, NULL);
}

static void test_selection(void **state)
{
        (void)state;
        check_rows(ROWS({"{1,2}[2]", "error"}, {"{1,2}[-1]", "error"}, {"{1,2}[0]", "1"},
                        {"{1,2}[\"a\"]", "error"}, {"{1,2}[1.0]", "error"},
                        {"[a=1][\"missing\"]", "undefined"}, {"[a=1][\"A\"]", "1"}, {"[a=1][0]", "error"},
                        {"5[0]", "error"}, {"{[a=1],[a=2]}.a", "{ 1,2 }"},
                        {"{[a=1],[b=2]}.a", "{ 1,undefined }"}, {"{[a=1],5}.a", "{ 1,error }"},
                        {"\"str\".a", "error"}, {"5 .a", "error"}, {"undefined.a", "undefined"},
                        {"[a=[b=[c=7]]].a.b.c", "7"}, {"{{1,2},{3}}[0][1]", "2"}, {"[a={4,5}].a[1]", "5"},
                        {"[ a = 1 ].'a'", "1"}),
                   NULL, NULL);
}

static void test_scope(void **state)
{
        (void)state;
        check_rows(
                ROWS({"x", "1"}, {"inner.y", "2"}, {"inner.fromOuter", "1"}, {"inner.z", "30"},
                     {".nosuch", "undefined"}, {"nosuch", "undefined"}, {"deep.a.b.c", "1"},
                     {"onlyTarget", "5"}, {"fromTarget", "6"}, {"TARGET.shared", "\"theirs\""},
                     {"shared", "\"mine\""}, {"TARGET.usesShared", "\"theirs\""},
                     {"TARGET.usesOther", "\"mine\""}, {"TARGET.bare", "1"},
                     {"{TARGET}[0].usesShared", "\"theirs\""}, {"{TARGET}[0].usesOther", "\"mine\""},
                     {"TARGET[\"usesOther\"]", "\"mine\""}, {"{[ in = x ]}[0].in", "1"},
                     {"TARGET.list[0].n", "\"theirs\""}, {"viaMine", "\"mine\""}, {"inner.parent.x", "1"},
                     {"inner.parent.inner.y", "2"}, {"inner.self.z", "30"}, {"inner.self.x", "1"},
                     {"deep.a.parent.parent.x", "1"}, {"parent.x", "undefined"}, {"inner.y.parent", "error"},
                     {"[ in = onlyTarget ].in", "undefined"}, {"[ in = TARGET.onlyTarget ].in", "5"},
                     {"named.theirs", "undefined"},
                     {"evalInEachContext(onlyTarget + own, { [ own = 1 ] })", "{ 6 }"},
                     {"{inner, deep}.parent.x", "{ 1,1 }"}, {"named.parent", "7"},
                     {"inner.my.x", "undefined"}, {"inner[\"parent\"]", "undefined"},
                     {"TARGET.list[0].parent.onlyTarget", "5"}, {"other.shared", "\"theirs\""}),
                "[ x = 1; z = 3; shared = \"mine\"; fromTarget = onlyTarget + 1; viaMine = TARGET.usesOther;"
                "  inner = [ y = 2; z = 30; fromOuter = x; absolute = .z ];"
                "  deep = [ a = [ b = [ c = x ] ] ]; named = [ parent = 7; theirs = onlyTarget ] ]",
                "[ onlyTarget = 5; shared = \"theirs\"; usesShared = shared; list = { [ n = shared ] }; "
                "usesOther = TARGET.shared; bare "
                "= x ]");
}

static void test_cycles(void **state)
{
        (void)state;
        check_rows(ROWS({"a", "undefined"}, {"b", "undefined"}, {"self_", "true"}, {"isUndefined(a)", "true"},
                        {"c", "5"}, {"mutual", "undefined"}, {"n.x", "undefined"}, {"twice", "4"}),
                   "[ a = b + 1; b = a + 1; self_ = isUndefined(self_); c = c ?: 5; mutual = TARGET.mutual;"
                   "  n = [ x = n.x ]; two = 1 + 1; twice = two + two ]",
                   "[ mutual = TARGET.mutual ]");
}

/* a0 = 1; a1 = a0 + 1; ... */
static void test_depth(void **state)
{
        struct buf text BUF_CLEANUP = {0};
        struct world w;

        (void)state;
        buf_addz(&text, "[ a0 = 1");
        for (int i = 1; i <= 500; i++)
                buf_printf(&text, "; a%d = a%d + 1", i, i - 1);
        buf_addz(&text, " ]");
        world_init(&w, buf_z(&text), NULL);
        world_check(&w, "a399", "400");
        assert_null(w.ev.limit_hit);
        world_check(&w, "a450", "error");
        assert_string_equal(w.ev.limit_hit, "depth");
        world_check(&w, "isError(a450)", "error"); /* a limit ends all of it */
        world_check(&w, "a10", "11");
        assert_null(w.ev.limit_hit);
        world_deinit(&w);
}

static void test_text_of_the_old_syntax(void **state)
{
        static const struct {
                const char *old, *value;
        } cases[] = {
                {"\"a\\db\"", "a\\db"},
                {"\"C:\\new\\\"", "C:\\new\\"},
                {"\"say \\\"no\\\" twice\"", "say \"no\" twice"},
                {"\"a\\\\b\"", "a\\\\b"},
                {"\"\\\"", "\\"},
                {"strcat(\"\\t\", \"x\")", "\\tx"},
        };
        struct symbols *symbols = symbols_new();
        struct eval ev;

        (void)state;
        eval_init(&ev, 0, 1);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                BUF_CLEANUP struct buf text = {0};
                struct expr *e = NULL;
                struct value v;

                expr_text_from_old(str_of(cases[i].old), &text);
                assert_int_equal(expr_parse(symbols, buf_view(&text), &e, NULL), 0);
                eval_expr(&ev, e, NULL, NULL, &v);
                assert_int_equal(v.type, VALUE_STRING);
                assert_true(str_eqz(v.string, cases[i].value));
                eval_reset(&ev);
                expr_free(e);
        }
        eval_deinit(&ev);
        symbols_free(symbols);
}

static void test_text_as_the_old_syntax(void **state)
{
        static const struct {
                const char *text, *old;
        } cases[] = {
                {"\"a\\\\db\"", "\"a\\db\""},
                {"{ \"say \\\"no\\\"\",\"b\\n\\tc\\001\" }", "{ \"say \\\"no\\\"\",\"b \tc\001\" }"},
                {"'it\\'s' + \"it's\"", "'it's' + \"it's\""},
                {"regexp(\"^n\\\\d+\",Machine)", "regexp(\"^n\\d+\",Machine)"},
                {"\"ends\\", "\"ends\\"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                BUF_CLEANUP struct buf old = {0};

                expr_text_to_old(str_of(cases[i].text), &old);
                assert_string_equal(buf_z(&old), cases[i].old);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_special_names),
                cmocka_unit_test(test_comments),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_strings),
                cmocka_unit_test(test_reals_print),
                cmocka_unit_test(test_precedence),
                cmocka_unit_test(test_strict),
                cmocka_unit_test(test_comparison),
                cmocka_unit_test(test_identity),
                cmocka_unit_test(test_logic),
                cmocka_unit_test(test_ternary),
                cmocka_unit_test(test_elvis),
                cmocka_unit_test(test_arithmetic),
                cmocka_unit_test(test_times),
                cmocka_unit_test(test_selection),
                cmocka_unit_test(test_scope),
                cmocka_unit_test(test_cycles),
                cmocka_unit_test(test_depth),
                cmocka_unit_test(test_text_of_the_old_syntax),
                cmocka_unit_test(test_text_as_the_old_syntax),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
