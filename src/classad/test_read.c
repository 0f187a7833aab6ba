/* Reading and writing of all encodings: forms that HTCondor writes, what is wrong with its place, and the
 * property that an ad which is written and read back is the same. */
#include "classad/test_help.h"

#include "base/mem.h"
#include "classad/read.h"

/* Each ad of the text in the new syntax, a line each; at an error, its sentence behind a "!". */
static const char *read_all(struct symbols *s, struct buf *out, struct str text, enum encoding encoding)
{
        struct ad_reader *r = ad_reader_new(s, text, encoding);
        struct err err = {{0}};
        struct ad *ad = NULL;
        int result;

        buf_reset(out);
        while ((result = ad_reader_next(r, &ad, &err)) == 0 && ad) {
                ad_print(out, ad, CLASSAD_NEW, false);
                buf_char(out, '\n');
                ad_free(ad);
        }
        if (result) {
                buf_printf(out, "!%s\n", err.text);
                assert_int_not_equal(ad_reader_next(r, &ad, &err), 0);
        }
        ad_reader_free(r);
        return buf_z(out);
}

static void check(const char *text, const char *expect)
{
        struct symbols *s = symbols_new();
        struct buf out BUF_CLEANUP = {0};
        const char *got = read_all(s, &out, str_of(text), ENCODING_AUTO);

        if (strcmp(got, expect) != 0)
                fail_msg("%s\nis read as\n%snot\n%s", text, got, expect);
        symbols_free(s);
}

static void test_which(void **state)
{
        static const struct {
                const char *text;
                enum encoding encoding;
        } rows[] = {
                {"", ENCODING_OLD},
                {"a = 1", ENCODING_OLD},
                {"# c\na = 1", ENCODING_OLD},
                {" [ a = 1 ]", ENCODING_NEW},
                {"[]", ENCODING_NEW},
                {"/* c */ [ ]", ENCODING_NEW},
                {"{ [ a = 1 ] }", ENCODING_NEW},
                {"{ // c\n [ a = 1 ] }", ENCODING_NEW},
                {"[ {\"a\":1} ]", ENCODING_JSON},
                {"{ \"a\":1}", ENCODING_JSON},
                {"{}", ENCODING_JSON},
                {"\xef\xbb\xbf{}", ENCODING_JSON},
                {"<?xml version=\"1.0\"?>", ENCODING_XML},
                {"\n<c/>", ENCODING_XML},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
                if (encoding_of(str_of(rows[i].text)) != rows[i].encoding)
                        fail_msg("%s is not of encoding %d", rows[i].text, rows[i].encoding);
}

static void test_many(void **state)
{
        (void)state;
        check("", "");
        check("a=1\nb=2\n\n \n# c\n\nc=3", "[ a = 1; b = 2 ]\n[ c = 3 ]\n");
        check("*** Offset = 0\na=1\n*** Offset = 9 ClusterId = 7\nb=2\n\n", "[ a = 1 ]\n[ b = 2 ]\n");
        check("[ a = 1 ] /* c */ [ b = 2 ]\n// c\n", "[ a = 1 ]\n[ b = 2 ]\n");
        check("{ [ a = 1 ],\n[ b = 2 ] } {} { [ c = 3 ] } [ d = 4 ]",
              "[ a = 1 ]\n[ b = 2 ]\n[ c = 3 ]\n[ d = 4 ]\n");
        check("[{\"a\":1},\n{\"b\":2}]\n", "[ a = 1 ]\n[ b = 2 ]\n");
        check("{\"a\":1}\n{\"b\":2}[{}][]", "[ a = 1 ]\n[ b = 2 ]\n[  ]\n");
        check("<classads><c><a n=\"a\"><i>1</i></a></c>\n<c/></classads>", "[ a = 1 ]\n[  ]\n");
        check("<c><a n=\"a\"><i>1</i></a></c>\n<c></c>", "[ a = 1 ]\n[  ]\n");
        check("\xef\xbb\xbf<c></c>", "[  ]\n");
        check("\xef\xbb\xbf[ a = 1 ]", "[ a = 1 ]\n");
}

static void test_xml(void **state)
{
        (void)state;
        check("<?xml version=\"1.0\"?>\n<!DOCTYPE classads SYSTEM \"classads.dtd\">\n<classads>\n<!-- c "
              "-->\n<c>\n"
              "    <a n=\"I\"><i> -7 </i></a><a n=\"R\"><r>1.5E+00</r></a>\n"
              "    <a n=\"S\"><s>a &amp; &lt;b&gt; \"c\" \\\"d\\\" \\\\ \\n \\303\\251 &#233; "
              "<![CDATA[<x>]]></s></a>\n"
              "    <a n=\"E\"><s></s></a><a n=\"E2\"><s/></a><a n=\"W\"><s>  </s></a>\n"
              "    <a n=\"T\"><b v=\"t\"/></a><a n=\"F\"><b v=\"f\"></b></a><a n=\"U\"><un/></a><a "
              "n=\"X\"><er></er></a>\n"
              "    <a n=\"At\"><at>2024-01-31T12:00:00+01:00</at></a><a n=\"Rt\"><rt>1+00:00:00</rt></a>\n"
              "    <a n=\"L\"><l><i>1</i> <l/><c><a n=\"n\"><s>x</s></a></c></l></a>\n"
              "    <a n=\"Ex\"><e>TARGET.q &lt; 3 &amp;&amp; y == \"a&gt;\"</e></a>\n"
              "    <a n=\"odd &quot;name\\\\\"><i>1</i></a>\n"
              "</c>\n</classads>\n",
              "[ I = -7; R = 1.500000000000000E+00; S = \"a & <b> \\\"c\\\" \\\"d\\\" \\\\ \\n \xc3\xa9 "
              "\xc3\xa9 <x>\"; "
              "E = \"\"; E2 = \"\"; W = \"  \"; T = true; F = false; U = undefined; X = error; "
              "At = absTime(\"2024-01-31T12:00:00+01:00\"); Rt = relTime(\"1+00:00:00\"); "
              "L = { 1,{  },[ n = \"x\" ] }; Ex = TARGET.q < 3 && y == \"a>\"; 'odd \"name\\\\' = 1 ]\n");
        check("<c><a n=\"a\"><r>INF</r></a><a n=\"b\"><r>-INF</r></a><a n=\"c\"><r>NaN</r></a>"
              "<a n=\"d\"><r>-0.0</r></a><a n=\"A\"><i>2</i></a></c>",
              "[ a = 2; b = real(\"-INF\"); c = real(\"NaN\"); d = -0.0 ]\n");
}

static void test_json(void **state)
{
        (void)state;
        check("{\"I\":-7,\"R\":1.0,\"E\":1e3,\"S\":\"a\\n\\u00e9\\/\",\"T\":true,\"F\":false,\"U\":null,"
              "\"L\":[1,[],{\"n\":\"x\"}],\"X\":\"\\/Expr(TARGET.q < 3)\\/\",\"Y\":\"/expr(error)/\","
              "\"Z\":\"/Expr(1\",\"odd name\":\"/Expr(\\\"/Expr(1)/\\\")/\",\"i\":8}",
              "[ I = 8; R = 1.000000000000000E+00; E = 1.000000000000000E+03; S = \"a\\n\xc3\xa9/\"; T = "
              "true; "
              "F = false; U = undefined; L = { 1,{  },[ n = \"x\" ] }; X = TARGET.q < 3; Y = error; "
              "Z = \"/Expr(1\"; 'odd name' = \"/Expr(1)/\" ]\n");
}

static void test_wrong(void **state)
{
        (void)state;
        check("a=1\n\nb=2\nc=\n", "[ a = 1 ]\n!line 4, column 3: the text ends where a value should stand\n");
        check("[ a=1 ]\n[ b=2; c ]", "[ a = 1 ]\n!line 2, column 10: ']' where '=' should stand\n");
        check("{ [ a=1 ]\n [ b=2 ] }",
              "[ a = 1 ]\n!line 2, column 2: ',' or '}' should stand between the ads of a list\n");
        check("{ [ a=1 ], }", "[ a = 1 ]\n!line 1, column 12: '}' where '[' should stand\n");
        check("{ [ a=1 ]", "[ a = 1 ]\n!line 1, column 10: the text ends within a list\n");
        check("[ a=1 ] x", "[ a = 1 ]\n!line 1, column 9: 'x' where '[' should stand\n");
        check("[{\"a\":1}\n{}]", "[ a = 1 ]\n!line 2, column 1: ',' or ']' should stand behind an ad\n");
        check("[{\"a\":1},\n]", "[ a = 1 ]\n!line 2, column 1: an object { ... } should stand here\n");
        check("[{\"a\":1}", "[ a = 1 ]\n!line 1, column 9: the text ends within an array\n");
        check("{\"a\":1} 5", "[ a = 1 ]\n!line 1, column 9: an object { ... } should stand here\n");
        check("{}\n {\"b\":\"/Expr(1 + )/\"}",
              "[  ]\n!line 2, column 2: attribute b: in its expression: line 1, "
              "column 5: the text ends where a value should stand\n");
        check("{\"\":1}", "!line 1, column 1: an attribute without a name\n");
        check("<c>\n <a n=\"x\"><q/></a></c>", "!line 2, column 11: <q> where a value should stand\n");
        check("<c>\n <a n=\"x\"><a/></a></c>", "!line 2, column 2: <a> where a value should stand\n");
        check("<c><a n=\"x\"><e>1 +</e></a></c>", "!line 1, column 13: in its expression: line 1, column 4: "
                                                  "the text ends where a value should stand\n");
        check("<classads><c>\n<a n=\"x\"><i>1</i>\n</c></classads>",
              "!line 3, column 5: Opening and ending tag mismatch: a line 2 and c\n");
        check("<c><a n=\"x\"><i>9223372036854775808</i></a></c>",
              "!line 1, column 13: an integer that is none, or has more than 64 bits\n");
        check("<c><a n=\"x\"><r>a</r></a></c>", "!line 1, column 13: a real that is none\n");
        check("<c><a n=\"x\"><b v=\"x\"/></a></c>", "!line 1, column 13: <b> needs v=\"t\" or v=\"f\"\n");
        check("<c><a n=\"x\"/></c>", "!line 1, column 4: an attribute without a value\n");
        check("<c><a><i>1</i></a></c>", "!line 1, column 4: <a> needs a name: n=\"...\"\n");
        check("<c><a n=\"x\"><i>1</i><i>2</i></a></c>",
              "!line 1, column 13: <i> where the end of the attribute should stand\n");
        check("<c><a n=\"x\"><s>\\0</s></a></c>",
              "!line 1, column 13: an escape that stands for no character\n");
        check("<d/>", "!line 1, column 1: <d> where <c> should stand\n");
        check("<?xml version=\"1.0\"?>\n<!DOCTYPE c [<!ENTITY x \"y\">]>\n<c><a n=\"q\"><s>&x;</s></a></c>",
              "!line 2, column 1: a document that declares entities is refused\n");
        check("<c><a n=\"q\"><s>&x;</s></a></c>", "!line 1, column 19: Entity 'x' not defined\n");
        check("<!DOCTYPE c SYSTEM \"file:///etc/hostname\">\n<c><a n=\"q\"><i>1</i></a></c>", "[ q = 1 ]\n");
}

/* Nested n deep, in the encoding that `open` and `close` belong to. */
static void check_depth(const char *head, const char *open, const char *close, const char *foot, int n,
                        bool fits)
{
        struct symbols *s = symbols_new();
        struct buf text BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};

        buf_addz(&text, head);
        for (int i = 0; i < n; i++)
                buf_addz(&text, open);
        for (int i = 0; i < n; i++)
                buf_addz(&text, close);
        buf_addz(&text, foot);
        read_all(s, &out, buf_view(&text), ENCODING_AUTO);
        if ((strstr(buf_z(&out), "nested too deep (the limit is 400)") == NULL) != fits)
                fail_msg("%d times %s: %s", n, open, buf_z(&out));
        symbols_free(s);
}

static void test_depth(void **state)
{
        (void)state;
        check_depth("{\"a\":", "[", "]", "}", 390, true);
        check_depth("{\"a\":", "[", "]", "}", 410, false);
        check_depth("{\"a\":", "{\"a\":[", "]}", "}", 210, false);
        check_depth("<c><a n=\"a\">", "<l>", "</l>", "</a></c>", 390, true);
        check_depth("<c><a n=\"a\">", "<l>", "</l>", "</a></c>", 410, false);
        check_depth("<c><a n=\"a\">", "<c><a n=\"b\">", "</a></c>", "</a></c>", 410, false);
}

/* ---- random ads */

static uint64_t next(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return *state >> 33;
}

static void random_string(uint64_t *seed, struct buf *out, bool plain)
{
        static const char *const pieces[] = {"a",
                                             "é",
                                             "\\\"",
                                             "'",
                                             "<",
                                             "&amp;",
                                             "]]>",
                                             " ",
                                             "/Expr(",
                                             ")/",
                                             "{",
                                             "x\\/",
                                             "\\\\",
                                             "\\n",
                                             "\\001",
                                             "\\377",
                                             "\\r",
                                             "\\t",
                                             "\xf0\x9f\x99\x82",
                                             "\xef\xbf\xbf"};
        unsigned n = plain ? 9 : sizeof(pieces) / sizeof(*pieces);

        buf_char(out, '"');
        for (uint64_t i = next(seed) % 6; i > 0; i--)
                buf_addz(out, pieces[next(seed) % n]);
        buf_char(out, '"');
}

static void random_thing(uint64_t *seed, struct buf *out, unsigned depth, bool plain)
{
        static const char *const leaves[] = {"1",
                                             "-1",
                                             "0",
                                             "9223372036854775807",
                                             "true",
                                             "false",
                                             "undefined",
                                             "error",
                                             "0.5",
                                             "-2.5E-10",
                                             "0.0",
                                             "-0.0",
                                             "1E22",
                                             "1.7E308",
                                             "(1)",
                                             "((a))",
                                             "x",
                                             "MY.x + 1",
                                             "TARGET.'odd name' <= 3 && a || b",
                                             "real(\"INF\")",
                                             "real(\"-INF\")",
                                             "absTime(\"2024-01-31T12:00:00+01:00\")",
                                             "absTime(\"foo\")",
                                             "absTime(5)",
                                             "relTime(\"1+02:03:04.500\")",
                                             "relTime(\"90\")",
                                             "relTime(90)",
                                             "f(1,\"<\",{ 2 })",
                                             "!a",
                                             "a ? b : c",
                                             "-x",
                                             "{ 1 }[0]",
                                             "[ a = 1 ].a",
                                             "({ 1 })",
                                             "'\xc3\xa9'",
                                             "a =?= undefined",
                                             "x >>> 2"};

        switch (depth ? next(seed) % 8 : 4 + next(seed) % 4) {
        case 0:
        case 1:
                buf_addz(out, "{ ");
                for (uint64_t i = 0, n = next(seed) % 4; i < n; i++) {
                        buf_addz(out, i ? "," : "");
                        random_thing(seed, out, depth - 1, plain);
                }
                buf_addz(out, " }");
                break;
        case 2:
        case 3:
                buf_addz(out, "[ ");
                for (uint64_t i = 0, n = next(seed) % 12; i < n; i++) {
                        buf_printf(out, "n%d = ", (int)(next(seed) % 12));
                        random_thing(seed, out, depth - 1, plain);
                        buf_addz(out, "; ");
                }
                buf_addz(out, "]");
                break;
        case 4: random_string(seed, out, plain); break;
        default: buf_addz(out, leaves[next(seed) % (sizeof(leaves) / sizeof(*leaves))]); break;
        }
}

static struct ad *random_ad(struct symbols *s, uint64_t seed, bool plain)
{
        static const char *const names[] = {"Name",        "b2", "'odd name'", "'true'",
                                            "'<&\"\\\\>'", "_x", "Rank",       "'\\n\xc3\xa9'"};
        struct buf text BUF_CLEANUP = {0};
        struct ad *ad = NULL;

        buf_addz(&text, "[ ");
        for (uint64_t i = next(&seed) % 14; i > 0; i--) {
                uint64_t which = next(&seed) % (plain ? 7 : 16);

                if (which < 8)
                        buf_addz(&text, names[which]);
                else
                        buf_printf(&text, "attr%d", (int)which);
                buf_addz(&text, " = ");
                random_thing(&seed, &text, 3, plain);
                buf_addz(&text, "; ");
        }
        buf_addz(&text, "]");
        if (ad_parse(s, buf_view(&text), CLASSAD_NEW, &ad, NULL) != 0)
                fail_msg("%s does not parse", buf_z(&text));
        return ad;
}

static void write_as(struct buf *out, const struct ad *ad, enum encoding encoding, bool frame)
{
        switch (encoding) {
        case ENCODING_JSON:
                buf_addz(out, frame ? "[" : "");
                ad_print_json(out, ad, false);
                buf_addz(out, frame ? "]" : "");
                break;
        case ENCODING_XML:
                buf_addz(out, frame ? PRINT_XML_HEAD : "");
                ad_print_xml(out, ad, false);
                buf_addz(out, frame ? PRINT_XML_FOOT : "");
                break;
        default: ad_print(out, ad, encoding == ENCODING_OLD ? CLASSAD_OLD : CLASSAD_NEW, false); break;
        }
}

static int compare_lines(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The ad with its attributes in the order of their names, since the old syntax sorts them. */
static char *sorted(const struct ad *ad)
{
        struct buf out BUF_CLEANUP = {0};
        char **lines = mem_array(NULL, ad_count(ad) + 1, sizeof(*lines));
        const struct expr *e;
        uint32_t at = 0;
        size_t n = 0;
        symbol name;

        while (ad_next(ad, &at, &name, &e)) {
                struct buf line = {0};

                buf_str(&line, symbols_name(ad_symbols(ad), name));
                buf_addz(&line, " = ");
                expr_print(&line, e, ad_symbols(ad));
                lines[n++] = buf_take(&line);
        }
        if (n)
                qsort(lines, n, sizeof(*lines), compare_lines);
        for (size_t i = 0; i < n; i++) {
                buf_printf(&out, "%s\n", lines[i]);
                free(lines[i]);
        }
        free(lines);
        buf_char(&out, '.');
        return buf_take(&out);
}

static void check_same(uint64_t seed, enum encoding encoding)
{
        bool plain = encoding == ENCODING_OLD;
        struct symbols *s = symbols_new();
        struct ad *ad = random_ad(s, seed, plain), *back = NULL;
        struct buf text BUF_CLEANUP = {0};
        MEM_CLEANUP char *was = sorted(ad), *is = NULL;
        struct ad_reader *r;
        struct err err = {{0}};

        write_as(&text, ad, encoding, seed % 2);
        r = ad_reader_new(s, buf_view(&text), ad_count(ad) == 0 ? encoding : ENCODING_AUTO);
        if (ad_count(ad) == 0 && plain)
                back = ad_new(s); /* no text at all */
        else if (ad_reader_next(r, &back, &err) != 0 || !back)
                fail_msg("seed %llu: %s in\n%s", (unsigned long long)seed, err.text, buf_z(&text));
        if (ad_count(ad))
                assert_int_equal(encoding_of(buf_view(&text)), encoding);
        is = sorted(back);
        if (strcmp(was, is) != 0)
                fail_msg("seed %llu:\n%s\nis read back as\n%s\nfrom\n%s", (unsigned long long)seed, was, is,
                         buf_z(&text));
        ad_reader_free(r);
        ad_free(ad);
        ad_free(back);
        symbols_free(s);
}

static void test_same(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 500; seed++)
                for (enum encoding e = ENCODING_NEW; e <= ENCODING_XML; e++)
                        check_same(seed * 0x9e3779b97f4a7c15u + 1, e);
}

/* Reals come back bit for bit, where the encoding has digits enough. */
static void test_reals(void **state)
{
        static const double reals[] = {0.1,  1.0 / 3,        0.1 + 0.2, 5e-324, 1.7976931348623157e308,
                                       1e15, -123456789.125, 1e22};
        struct symbols *s = symbols_new();
        symbol name = symbols_intern(s, STR("x"));
        struct ad *ad = ad_new(s), *back = NULL;
        struct ad_reader *r;
        struct value v;

        (void)state;
        for (size_t i = 0; i < sizeof(reals) / sizeof(*reals); i++)
                for (enum encoding e = ENCODING_JSON; e <= ENCODING_XML; e++) {
                        struct buf text BUF_CLEANUP = {0};

                        ad_set_real(ad, name, reals[i]);
                        write_as(&text, ad, e, true);
                        r = ad_reader_new(s, buf_view(&text), e);
                        assert_int_equal(ad_reader_next(r, &back, NULL), 0);
                        assert_true(ad_literal(back, name, &v));
                        assert_int_equal(v.type, VALUE_REAL);
                        if (memcmp(&v.real, &reals[i], sizeof(double)) != 0)
                                fail_msg("%.17g is read back as %.17g from %s", reals[i], v.real,
                                         buf_z(&text));
                        ad_free(back);
                        ad_reader_free(r);
                }
        ad_free(ad);
        symbols_free(s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_which), cmocka_unit_test(test_many),  cmocka_unit_test(test_xml),
                cmocka_unit_test(test_json),  cmocka_unit_test(test_wrong), cmocka_unit_test(test_depth),
                cmocka_unit_test(test_same),  cmocka_unit_test(test_reals),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
