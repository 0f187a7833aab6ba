#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/sssrmap/message.h"
#include "server/sssrmap/schema.h"

#define KEY STR("0123456789abcdef")
#define BALANCE                                                                                              \
        "<Request action=\"Balance\" actor=\"amy\"><Object>Account</Object><Option name=\"ProjectId\">chem " \
        "&amp; co</Option></Request>"
#define ENVELOPE "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Envelope><Body>" BALANCE "</Body></Envelope>"

static struct xml_schema *schema;

static int set_up(void **state)
{
        (void)state;
        return xml_schema_new("sssrmap.xsd", str_make(sssrmap_schema_text, sssrmap_schema_size), &schema,
                              NULL);
}

static int tear_down(void **state)
{
        (void)state;
        xml_schema_free(schema);
        return 0;
}

static int code_of(struct str text)
{
        struct sssrmap_message m;
        struct err err = {""};
        int code = sssrmap_read(text, schema, &m, &err);

        if (code == 0 && m.request)
                code = sssrmap_request(&m, &err);
        sssrmap_deinit(&m);
        return code;
}

static void requests_are_read_one_by_one(void **state)
{
        struct sssrmap_message m;
        struct err err = {""};

        (void)state;
        assert_int_equal(sssrmap_read(STR("<Envelope><Body>" BALANCE
                                          "<Request action=\"Query\" actor=\"bob\" id=\"2\"><Get name=\"x\"/>"
                                          "</Request></Body></Envelope>"),
                                      schema, &m, &err),
                         0);
        assert_int_equal(sssrmap_request(&m, &err), 0);
        assert_string_equal(m.actor, "amy");
        assert_null(m.id);
        assert_true(sssrmap_next(&m));
        assert_string_equal(m.actor, "bob");
        assert_string_equal(m.id, "2");
        assert_int_equal(sssrmap_request(&m, &err), SSSRMAP_OBJECT);
        assert_false(sssrmap_next(&m));
        sssrmap_deinit(&m);
}

static void a_request_is_read(void **state)
{
        struct sssrmap_message m;
        struct err err = {""};
        struct str value;

        (void)state;
        assert_int_equal(sssrmap_read(STR(ENVELOPE), schema, &m, &err), 0);
        assert_int_equal(sssrmap_request(&m, &err), 0);
        assert_string_equal(m.action, "Balance");
        assert_string_equal(m.object, "Account");
        assert_string_equal(m.actor, "amy");
        assert_true(str_eq(m.body, STR("<Body>" BALANCE "</Body>")));
        assert_false(m.signature.given);
        assert_int_equal(sssrmap_parameter(&m, "ProjectId", &value, &err), 0);
        assert_true(str_eqz(value, "chem & co"));
        assert_int_equal(sssrmap_parameter(&m, "Amount", &value, &err), 0);
        assert_int_equal(value.n, 0);
        assert_int_equal(sssrmap_only(&m, (const char *const[]){"ProjectId", NULL}, &err), 0);
        assert_int_equal(sssrmap_only(&m, (const char *const[]){"Amount", NULL}, &err), SSSRMAP_VALUE);
        sssrmap_deinit(&m);
}

static void what_is_written_is_signed(void **state)
{
        (void)state;
        for (unsigned size = 20; size <= 32; size += 12) {
                BUF_CLEANUP struct buf text = {0}, other = {0};
                struct sssrmap_message m;
                struct err err = {""};

                sssrmap_write(&text, STR(BALANCE), KEY, "a<b", size);
                assert_int_equal(sssrmap_read(buf_view(&text), schema, &m, &err), 0);
                assert_int_equal(m.signature.size, size);
                assert_string_equal(m.signature.token_name, "a<b");
                assert_true(sssrmap_is_signed(&m, KEY));
                assert_false(sssrmap_is_signed(&m, STR("0123456789abcdeg")));
                assert_false(sssrmap_is_signed(&m, STR_NONE));
                sssrmap_deinit(&m);
                /* any other body */
                buf_str(&other, buf_view(&text));
                *strstr((char *)(uintptr_t)buf_z(&other), "amy") = 'b';
                assert_int_equal(sssrmap_read(buf_view(&other), schema, &m, &err), 0);
                assert_false(sssrmap_is_signed(&m, KEY));
                sssrmap_deinit(&m);
        }
}

/* The example of a client that was written for Gold: SHA-1, and a token with an empty text. */
static void golds_form_is_read(void **state)
{
        struct sssrmap_message m;
        struct err err = {""};

        (void)state;
        assert_int_equal(
                sssrmap_read(
                        STR("<?xml version='1.0' encoding='UTF-8'?><Envelope><Body><Request action=\"Query\" "
                            "actor=\"root\"><Object>Job</Object><Get name=\"JobId\"></Get><Where "
                            "name=\"UserId\" op=\"EQ\">amy</Where></Request></Body><Signature><DigestValue>"
                            "Kq5sNclPz7QV2+lfQIuc6R7oRu0=</DigestValue><SignatureValue>"
                            "Kq5sNclPz7QV2+lfQIuc6R7oRu0=</SignatureValue><SecurityToken "
                            "type='Symmetric'></SecurityToken></Signature></Envelope>"),
                        schema, &m, &err),
                0);
        assert_true(m.signature.keyed);
        assert_int_equal(m.signature.size, 20);
        assert_null(m.signature.token_name);
        sssrmap_deinit(&m);
}

static void what_is_no_message_is_refused(void **state)
{
        static const char *const bad[] = {
                "",
                " ",
                "<Envelope/>",
                "x" ENVELOPE,
                ENVELOPE "x",
                "<Envelope><Body></Body></Envelope>",
                "<Body>" BALANCE "</Body>",
                "<Envelope><Body>" BALANCE "</Body><Body>" BALANCE "</Body></Envelope>",
                "<Envelope><Body>" BALANCE "<Response><Status><Value>Success</Value><Code>000</Code></Status>"
                "</Response></Body></Envelope>",
                "<Envelope><!-- <Body> --><Body>" BALANCE "</Body></Envelope>",
                "<Envelope><Body>" BALANCE "<![CDATA[x]]></Body></Envelope>",
                "<!DOCTYPE Envelope [<!ENTITY e \"x\">]><Envelope><Body>" BALANCE "</Body></Envelope>",
                "<!DOCTYPE Envelope SYSTEM \"file:///etc/passwd\"><Envelope><Body>" BALANCE
                "</Body></Envelope>",
                "<?xml version=\"1.0\" encoding=\"UTF-7\"?><Envelope><Body>" BALANCE "</Body></Envelope>",
                "<?xml version=\"1.0\"?><?x y?><Envelope><Body>" BALANCE "</Body></Envelope>",
                "<?xml version=\"1.0\"",
                "<Envelope xmlns=\"http://x/\"><Body>" BALANCE "</Body></Envelope>",
                "<Envelope><Body>&e;" BALANCE "</Body></Envelope>",
                "<Envelope><Body><Request action=\"Query\"><Object>Job</Object></Request></Body></Envelope>",
                "<Envelope><Body><Request action=\"Query\" "
                "actor=\"\"><Object>Job</Object></Request></Body></Envelope>",
                "<Envelope><Body><Request action=\"a b\" "
                "actor=\"r\"><Object>Job</Object></Request></Body></Envelope>",
                "<Envelope><Body><Request action=\"Query\" actor=\"r\"><Object>Job</Object><Where name=\"a\" "
                "op=\"LIKE\">1</Where></Request></Body></Envelope>",
                "<Envelope><Body><Request action=\"Query\" "
                "actor=\"r\"><Object>Job</Object><Data><Job><JobId>1</JobId>"
                "<JobId>2</JobId></Job></Data></Request></Body></Envelope>",
                "<Envelope><Body><Request action=\"Query\" "
                "actor=\"r\"><Object>Job</Object><Data><Job><Processors>-1"
                "</Processors></Job></Data></Request></Body></Envelope>",
                "<Envelope><Body>" BALANCE "</Body><Signature><DigestValue>x</DigestValue><SignatureValue>x"
                "</SignatureValue></Signature></Envelope>",
                "<Envelope><Body>" BALANCE
                "</Body><Signature><SecurityToken type=\"None\"/></Signature></Envelope>",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                if (code_of(str_of(bad[i])) != SSSRMAP_MALFORMED)
                        fail_msg("%s", bad[i]);
        assert_int_equal(code_of(str_make("<Envelope>\0</Envelope>", 22)), SSSRMAP_MALFORMED);
        BUF_CLEANUP struct buf many = {0};
        buf_addz(&many, "<Envelope");
        for (unsigned i = 0; i < 20000; i++)
                buf_printf(&many, " a%u=''", i);
        buf_addz(&many, "><Body></Body></Envelope>");
        assert_int_equal(code_of(buf_view(&many)), SSSRMAP_MALFORMED); /* at once */
        assert_int_equal(
                code_of(STR(
                        "<Envelope><Body><Request action=\"Query\" actor=\"r\"><Get name=\"a\"/></Request>"
                        "</Body></Envelope>")),
                SSSRMAP_OBJECT);
        assert_int_equal(
                code_of(STR(
                        "<Envelope><Body><Request action=\"Query\" actor=\"r\"><Object>Job</Object><Object>"
                        "Node</Object></Request></Body></Envelope>")),
                SSSRMAP_OBJECT);
        assert_int_equal(
                code_of(STR("<Envelope><Body>" BALANCE "</Body><Signature><SecurityToken type=\"Cleartext\"> "
                            "</SecurityToken></Signature></Envelope>")),
                SSSRMAP_SIGNATURE);
}

static void a_large_message_is_refused(void **state)
{
        BUF_CLEANUP struct buf text = {0};

        (void)state;
        buf_addz(&text, ENVELOPE);
        while (text.n <= SSSRMAP_MESSAGE_MAX)
                buf_char(&text, ' ');
        assert_int_equal(code_of(buf_view(&text)), SSSRMAP_MALFORMED);
        buf_truncate(&text, SSSRMAP_MESSAGE_MAX);
        assert_int_equal(code_of(buf_view(&text)), 0);
}

static void a_parameter_is_there_once(void **state)
{
        struct sssrmap_message m;
        struct err err = {""};
        struct str value;

        (void)state;
        assert_int_equal(sssrmap_read(STR("<Envelope><Body><Request action=\"Quote\" "
                                          "actor=\"r\"><Object>Job</Object><Option "
                                          "name=\"ProjectId\">a</Option><Data><Job><ProjectId>b</ProjectId></"
                                          "Job></Data></Request>"
                                          "</Body></Envelope>"),
                                      schema, &m, &err),
                         0);
        assert_int_equal(sssrmap_parameter(&m, "ProjectId", &value, &err), SSSRMAP_VALUE);
        sssrmap_deinit(&m);
}

static void tokens_of_other_types_are_named(void **state)
{
        static const char *const types[] = {"Password", "Asymmetric", "X509v3", "Kerberos5"};

        (void)state;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                BUF_CLEANUP struct buf text = {0};
                struct sssrmap_message m;
                struct err err = {""};

                buf_printf(&text,
                           "<Envelope><Body>" BALANCE "</Body><Signature><SecurityToken type=\"%s\">x"
                           "</SecurityToken></Signature></Envelope>",
                           types[i]);
                assert_int_equal(sssrmap_read(buf_view(&text), schema, &m, &err), SSSRMAP_SIGNATURE);
                assert_true(str_search(str_of(err.text), str_of(types[i])) >= 0);
                sssrmap_deinit(&m);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_request_is_read),
                cmocka_unit_test(requests_are_read_one_by_one),
                cmocka_unit_test(what_is_written_is_signed),
                cmocka_unit_test(golds_form_is_read),
                cmocka_unit_test(what_is_no_message_is_refused),
                cmocka_unit_test(a_large_message_is_refused),
                cmocka_unit_test(a_parameter_is_there_once),
                cmocka_unit_test(tokens_of_other_types_are_named),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
