#include "jdl/sums/entities.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct entity given[] = {{STR("run"), STR("12&\"<x>")}, {STR("both"), STR("outside")}};

static void expect(const char *text, const char *want)
{
        BUF_CLEANUP struct buf out = {0};
        struct err err = {{0}};

        assert_int_equal(entities_put_in("f", str_of(text), given, 2, &out, &err), 0);
        assert_string_equal(buf_z(&out), want);
}

/* A head of declarations becomes blanks, so that lines keep their numbers. */
static void expect_behind(const char *text, const char *want)
{
        BUF_CLEANUP struct buf out = {0};
        struct err err = {{0}};
        size_t lines = 0;

        assert_int_equal(entities_put_in("f", str_of(text), given, 2, &out, &err), 0);
        assert_true(str_eqz(str_trim(buf_view(&out)), want));
        for (const char *p = text; *p; p++)
                lines += *p == '\n';
        for (size_t i = 0; i < out.n; i++)
                lines -= out.p[i] == '\n';
        assert_int_equal(lines, 0);
}

static void refuse(const char *text, const char *says)
{
        BUF_CLEANUP struct buf out = {0};
        struct err err = {{0}};

        assert_true(entities_put_in("f", str_of(text), given, 2, &out, &err) < 0);
        if (!strstr(err.text, says))
                fail_msg("%s does not say %s", err.text, says);
}

static void test_values(void **state)
{
        (void)state;
        expect("<a>&run; &amp; &#65;</a>", "<a>12&amp;&quot;&lt;x&gt; &amp; &#65;</a>");
        expect_behind("<!DOCTYPE j [ <!ENTITY a '1'>\n<!-- & --> <!ENTITY b \"&a;2\"> ]><a>&b;</a>",
                      "<a>12</a>");
        expect("<?xml version='1.0'?>\n<!-- &x --><a><![CDATA[&x;]]><!-- &y --></a>",
               "<?xml version='1.0'?>\n<!-- &x --><a><![CDATA[&x;]]><!-- &y --></a>");
        expect_behind(
                "<!DOCTYPE j [<!ENTITY both 'inside'><!ENTITY twice '1'><!ENTITY twice '2'>]>&both;&twice;",
                "outside1");
}

static void test_refused(void **state)
{
        (void)state;
        refuse("<a>\n&none;</a>", "f:2: the entity &none; has no value; give it with -entities none=VALUE");
        refuse("<a>\n\nx && y</a>", "f:3: the character & is written as &amp;");
        refuse("<!DOCTYPE j SYSTEM 'file:///etc/passwd'><a/>",
               "f:1: a document type in another file is not read");
        refuse("<!DOCTYPE j [\n<!ENTITY p SYSTEM 'file:///etc/passwd'>]><a>&p;</a>",
               "f:2: the entity p lies in another file");
        refuse("<!DOCTYPE j [<!ENTITY % p 'x'>]><a/>", "an entity is declared as");
        refuse("<!DOCTYPE j [<!ELEMENT j ANY>]><a/>", "a document type may have <!ENTITY");
        refuse("<!DOCTYPE j [<!ENTITY p 'x'>", "f:1: the document type has no end");
        refuse("<!DOCTYPE j [<!ENTITY p 'x>", "has no end");
        refuse("<!DOCTYPE j [<!ENTITY p '&p;'>]><a>&p;</a>", "is made of others 8 deep");
}

/* A billion of nothing, and a billion of something. */
static void test_bombs(void **state)
{
        BUF_CLEANUP struct buf text = {0}, empty = {0}, many = {0};

        (void)state;
        for (int kind = 0; kind < 2; kind++) {
                struct buf *to = kind ? &many : &empty;

                buf_printf(to, "<!DOCTYPE j [<!ENTITY e0 '%s'>", kind ? "lol lol lol lol lol lol lol" : "");
                for (int i = 1; i < 8; i++) {
                        buf_printf(to, "<!ENTITY e%d '", i);
                        for (int k = 0; k < 30; k++)
                                buf_printf(to, "&e%d;", i - 1);
                        buf_addz(to, "'>");
                }
                buf_addz(to, "]><a>&e7;</a>");
        }
        refuse(buf_z(&empty), "more than 100000 references");
        refuse(buf_z(&many), "more than 100000 references");
        buf_addz(&text, "<!DOCTYPE j [<!ENTITY e '");
        for (int i = 0; i < 1000; i++)
                buf_addz(&text, "0123456789");
        buf_addz(&text, "'>]><a>");
        for (int i = 0; i < 1000; i++)
                buf_addz(&text, "&e;");
        buf_addz(&text, "</a>");
        refuse(buf_z(&text), "with its entities the text has more than 4 MiB");
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_refused),
                                           cmocka_unit_test(test_bombs)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
