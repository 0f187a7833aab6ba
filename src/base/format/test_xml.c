#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/format/xml.h"

static struct xml *read_xml(const char *text)
{
        struct xml *x = NULL;
        struct err err = {""};

        if (xml_parse("f.xml", str_of(text), &x, &err) != 0)
                fail_msg("%s", err.text);
        return x;
}

static void is_a_tree(void **state)
{
        struct xml *x = read_xml(
                           "<?xml version=\"1.0\"?>\n<!-- one -->\n<a n=\"1\" m='&lt;2'>\n <b/>t<!-- no "
                           "-->\n<![CDATA[<u> & ]]><b k=\"\">v</b>\n</a>\n"),
                   *b = xml_child(x, "b"), *copy;

        (void)state;
        assert_true(xml_is(x, "a"));
        assert_int_equal(x->line, 3);
        assert_string_equal(xml_get(x, "n"), "1");
        assert_string_equal(xml_get(x, "m"), "<2");
        assert_null(xml_get(x, "k"));
        assert_string_equal(x->text, "\n t\n<u> & \n");
        assert_int_equal(b->line, 4);
        assert_string_equal(b->text, "");
        b = xml_next(b, "b");
        assert_string_equal(xml_get(b, "k"), "");
        assert_true(str_eqz(xml_text(b), "v"));
        assert_string_equal(b->file, "f.xml");
        assert_null(xml_next(b, "b"));
        assert_null(xml_child(b, "b"));
        copy = xml_dup(x);
        assert_string_equal(xml_get(copy, "m"), "<2");
        assert_true(str_eqz(xml_text(xml_next(xml_child(copy, "b"), "b")), "v"));
        copy->file = NULL; /* borrowed */
        xml_free(copy);
        xml_free(x);
}

static void is_refused(const char *text, const char *why)
{
        struct xml *x = NULL;
        struct err err = {""};

        assert_int_equal(xml_parse("f.xml", str_of(text), &x, &err), -EINVAL);
        assert_null(x);
        if (!strstr(err.text, why))
                fail_msg("'%s' is not in '%s'", why, err.text);
}

static void what_is_no_xml_is_refused(void **state)
{
        (void)state;
        is_refused(" \n", "f.xml:1: there is nothing in it");
        is_refused("no", "f.xml:1: ");
        is_refused("<a>\n<b></a>", "f.xml:2: ");
        is_refused("<a>\n<b>", "f.xml:2: ");
        is_refused("<!DOCTYPE a [<!ENTITY e 'eee'>]><a>&e;</a>", "document type");
        is_refused("<a>&nbsp;</a>", "nbsp");
}

static void depth_is_limited(void **state)
{
        BUF_CLEANUP struct buf b = {0};
        struct xml *x;

        (void)state;
        for (unsigned i = 0; i < XML_DEPTH_MAX; i++)
                buf_addz(&b, "<a>");
        for (unsigned i = 0; i < XML_DEPTH_MAX; i++)
                buf_addz(&b, "</a>");
        x = read_xml(buf_z(&b));
        xml_free(x);
        buf_reset(&b);
        for (unsigned i = 0; i < 5000; i++)
                buf_addz(&b, "<a>");
        is_refused(buf_z(&b), "nested too deep");
}

static void a_schema_is_followed(void **state)
{
        static const char text[] =
                "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"><xs:element name=\"a\">"
                "<xs:complexType><xs:attribute name=\"n\" type=\"xs:int\" use=\"required\"/>"
                "</xs:complexType></xs:element></xs:schema>";
        struct xml_schema *schema = NULL;
        struct xml *x = NULL;
        struct err err = {""};

        (void)state;
        assert_int_equal(xml_schema_new("s.xsd", STR("<xs:schema/>"), &schema, &err), -EINVAL);
        assert_int_equal(xml_schema_new("s.xsd", str_of(text), &schema, &err), 0);
        assert_int_equal(xml_parse_valid("f", STR("<a n='5'/>"), schema, &x, &err), 0);
        assert_string_equal(xml_get(x, "n"), "5");
        xml_free(x);
        assert_int_equal(xml_parse_valid("f", STR("<a n='x'/>"), schema, &x, &err), -EINVAL);
        assert_non_null(strstr(err.text, "f: line 1"));
        assert_int_equal(xml_parse_valid("f", STR("<b n='5'/>"), schema, &x, &err), -EINVAL);
        assert_int_equal(xml_parse_valid("f", STR("<a n='5'>"), schema, &x, &err), -EINVAL);
        assert_int_equal(xml_parse_valid("f", STR("<!DOCTYPE a SYSTEM 'x'><a n='5'/>"), schema, &x, &err),
                         -EINVAL);
        xml_schema_free(schema);
}

static void text_is_escaped(void **state)
{
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        xml_escape(&out, STR("a<b>&\"\t\x01\xff\xc3\xaf\xef\xbf\xbf"));
        assert_string_equal(buf_z(&out),
                            "a&lt;b&gt;&amp;&quot;\t\xef\xbf\xbd\xef\xbf\xbd\xc3\xaf\xef\xbf\xbd");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(is_a_tree),        cmocka_unit_test(what_is_no_xml_is_refused),
                cmocka_unit_test(depth_is_limited), cmocka_unit_test(a_schema_is_followed),
                cmocka_unit_test(text_is_escaped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
