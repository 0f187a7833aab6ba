#include "server/sssrmap/selection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "server/sssrmap/schema.h"

static struct xml_schema *schema;
static const struct sssrmap_fields fields = {
        {"Id", "User", "Amount", "State", "Job", "Name", NULL},
        {SSSRMAP_NUMBER, SSSRMAP_USER, SSSRMAP_NUMBER, SSSRMAP_TEXT, SSSRMAP_JOB_ID, SSSRMAP_TEXT}};
static const char *const parameters[] = {"State", NULL};

/* The elements that all tests ask about; NULL: the field is not there. */
static const char *const elements[][6] = {
        {"1", "amy@lab", "100", "idle", "7.1", "10"}, {"2", "bob@lab", "9", "running", "7.10", "010"},
        {"3", "amy@far", "-5", "held", "7.2", "1e1"}, {"10", "eve@lab", NULL, "idle", "10.0", "10.0"},
        {"11", "amy@lab", "9.0", "", "PBS.1", "9"},   {"2a", "bob@far", "7", "running", NULL, "1.10"}};

/* Asks with these Where and Get; the answer is the texts of each element, in order. Returns the code. */
static int ask(const char *action, const char *given, struct buf *ret)
{
        BUF_CLEANUP struct buf text = {0}, out = {0};
        struct sssrmap_selection *s = NULL;
        struct sssrmap_message m;
        struct err err = {""};
        size_t count = 0;
        int r;

        buf_printf(
                &text,
                "<Envelope><Body><Request action=\"%s\" actor=\"amy\"><Object>Job</Object>%s</Request></Body>"
                "</Envelope>",
                action, given);
        r = sssrmap_read(buf_view(&text), schema, &m, &err);
        if (r == 0)
                r = sssrmap_request(&m, &err);
        if (r == 0)
                r = sssrmap_only(&m, parameters, &err);
        if (r == 0)
                r = sssrmap_selection_new(&m, parameters, &fields, &s, &err);
        for (size_t i = 0; r == 0 && i < sizeof(elements) / sizeof(elements[0]); i++) {
                struct str values[6];

                for (unsigned k = 0; k < 6; k++)
                        values[k] = str_of(elements[i][k]);
                sssrmap_selection_add(s, values, "x", &out);
        }
        if (r == 0)
                r = sssrmap_selection_end(s, "x", &out, &count, &err);
        buf_reset(ret);
        if (r == 0)
                buf_printf(ret, "%zu:" STR_FMT, count, STR_ARG(buf_view(&out)));
        else
                buf_addz(ret, err.text);
        sssrmap_selection_free(s);
        sssrmap_deinit(&m);
        return r;
}

/* Asks for the ids of what meets conditions. */
static const char *ids(const char *conditions)
{
        static char list[64];
        BUF_CLEANUP struct buf given = {0}, said = {0};
        struct str rest;
        ptrdiff_t at;
        size_t n = 0;

        buf_printf(&given, "%s<Get name=\"Id\"/>", conditions);
        assert_int_equal(ask("Query", buf_z(&given), &said), 0);
        list[0] = 0;
        rest = buf_view(&said);
        while ((at = str_search(rest, STR("<Id>"))) >= 0) {
                rest = str_skip(rest, (size_t)at + 4);
                n += (size_t)snprintf(list + n, sizeof(list) - n, "%s" STR_FMT, n ? " " : "",
                                      STR_ARG(str_head(rest, (size_t)str_find(rest, '<'))));
        }
        return list;
}

#define WHERE(name, more, value) "<Where name=\"" name "\" " more ">" value "</Where>"

static void texts_and_numbers_are_compared(void **state)
{
        (void)state;
        assert_string_equal(ids(WHERE("Amount", "op=\"GT\"", "8")), "1 2 11");
        assert_string_equal(ids(WHERE("Amount", "op=\"GE\"", "9")), "1 2 11");
        assert_string_equal(ids(WHERE("Amount", "op=\"G\"", "9")), "1");
        assert_string_equal(ids(WHERE("Amount", "op=\"LT\"", "0")), "3");
        assert_string_equal(ids(WHERE("Amount", "op=\"L\"", "-5")), "");
        assert_string_equal(ids(WHERE("Amount", "op=\"LE\"", "7.0")), "3 2a");
        assert_string_equal(ids(WHERE("Amount", "", "9.0")), "2 11");
        assert_string_equal(ids(WHERE("Amount", "op=\"NE\"", "9")), "1 3 10 2a"); /* also what has none */
        assert_string_equal(ids(WHERE("Id", "op=\"LT\"", "10")), "1 2 3");
        assert_string_equal(ids(WHERE("User", "", "amy")), "1 3 11");
        assert_string_equal(ids(WHERE("User", "", "amy@lab")), "1 11");
        assert_string_equal(ids(WHERE("User", "op=\"NE\"", "amy")), "2 10 2a");
        assert_string_equal(ids(WHERE("Amount", "op=\"LT\"", "9223372036854775807")), "1 2 3 11 2a");
}

/* Names are texts, even if they look like one number. */
static void names_are_no_numbers(void **state)
{
        BUF_CLEANUP struct buf said = {0};

        (void)state;
        assert_string_equal(ids(WHERE("Name", "", "10")), "1");
        assert_string_equal(ids(WHERE("Name", "op=\"NE\"", "10")), "2 3 10 11 2a");
        assert_string_equal(ids(WHERE("Name", "op=\"LT\"", "10")), "2 2a");
        assert_string_equal(ids("<Get name=\"Name\" op=\"Sort\"/>"), "2 2a 1 10 3 11");
        assert_int_equal(
                ask("Query", "<Get name=\"Name\" op=\"Sum\"/><Get name=\"Name\" op=\"Max\"/>", &said), 0);
        assert_string_equal(buf_z(&said), "1:<x><Name>9</Name></x>");
}

/* Ids of jobs are compared by request and job; what is no id stands behind them. */
static void job_ids_are_two_numbers(void **state)
{
        BUF_CLEANUP struct buf said = {0};

        (void)state;
        assert_string_equal(ids(WHERE("Job", "", "7.1")), "1");
        assert_string_equal(ids(WHERE("Job", "op=\"NE\"", "7.1")), "2 3 10 11 2a");
        assert_string_equal(ids(WHERE("Job", "op=\"GT\"", "7.2")), "2 10 11");
        assert_string_equal(ids(WHERE("Job", "op=\"LE\"", "7.2")), "1 3");
        assert_string_equal(ids(WHERE("Job", "", "7")), "1 2 3");
        assert_string_equal(ids(WHERE("Job", "op=\"GT\"", "7")), "10 11");
        assert_string_equal(ids(WHERE("Job", "op=\"LE\"", "7")), "1 2 3");
        assert_string_equal(ids(WHERE("Job", "", "7.01")), "");
        assert_string_equal(ids(WHERE("Job", "", "7.1e0")), "");
        assert_string_equal(ids(WHERE("Job", "", "99999999999999999999.1")), "");
        assert_string_equal(ids(WHERE("Job", "", "PBS.1")), "11");
        assert_string_equal(ids("<Get name=\"Job\" op=\"Sort\"/>"), "2a 1 3 2 10 11");
        assert_string_equal(ids("<Get name=\"Job\" op=\"Tros\"/>"), "11 10 2 3 1 2a");
        assert_int_equal(
                ask("Query",
                    WHERE("Job", "", "7") "<Get name=\"Job\" op=\"Max\"/><Get name=\"Job\" op=\"Min\"/>"
                                          "<Get name=\"Job\" op=\"Sum\"/>",
                    &said),
                0);
        assert_string_equal(buf_z(&said), "1:<x><Job>7.10</Job><Job>7.1</Job></x>");
}

static void patterns_match(void **state)
{
        (void)state;
        assert_string_equal(ids(WHERE("User", "op=\"Match\"", "*@lab")), "1 2 10 11");
        assert_string_equal(ids(WHERE("User", "op=\"Match\"", "?o*")), "2 2a");
        assert_string_equal(ids(WHERE("State", "op=\"Match\"", "*")), "1 2 3 10 11 2a");
        assert_string_equal(ids(WHERE("State", "op=\"Match\"", "*n*n?")), "2 2a");
        assert_string_equal(ids(WHERE("Id", "op=\"Match\"", "")), "");
        assert_string_equal(ids(WHERE("State", "op=\"Match\"", "")), "11");
}

/* And binds closer than Or; groups are parentheses; AndNot and OrNot turn what follows. */
static void conditions_are_joined(void **state)
{
        (void)state;
        assert_string_equal(ids(WHERE("Id", "op=\"EQ\"", "1") WHERE("Id", "conj=\"Or\"", "3")), "1 3");
        assert_string_equal(ids(WHERE("Id", "", "1") WHERE("Id", "conj=\"Or\"", "2")
                                        WHERE("State", "conj=\"And\"", "held")),
                            "1");
        assert_string_equal(ids(WHERE("Id", "group=\"1\"", "1") WHERE("Id", "conj=\"Or\" group=\"-1\"", "2")
                                        WHERE("State", "", "running")),
                            "2");
        assert_string_equal(ids(WHERE("State", "", "running") WHERE("Id", "conj=\"And\" groups=\"+1\"", "1")
                                        WHERE("Id", "conj=\"Or\" groups=\"-1\"", "2")),
                            "2");
        assert_string_equal(ids(WHERE("User", "", "amy") WHERE("State", "conj=\"AndNot\"", "held")), "1 11");
        assert_string_equal(ids(WHERE("State", "", "held") WHERE("User", "conj=\"OrNot\"", "amy")),
                            "2 3 10 2a");
        assert_string_equal(ids(WHERE("Id", "op=\"GT\"", "0")
                                        WHERE("State", "conj=\"AndNot\" group=\"2\"", "idle")
                                                WHERE("State", "conj=\"Or\" group=\"-1\"", "held")
                                                        WHERE("User", "conj=\"And\" group=\"-1\"", "amy")),
                            "2 10 11 2a");
        /* the first has no condition before it */
        assert_string_equal(ids(WHERE("State", "conj=\"OrNot\"", "idle")), "2 3 11 2a");
        /* equality of a parameter is the call's, which this test does not make */
        assert_string_equal(ids(WHERE("State", "", "idle")), "1 2 3 10 11 2a");
        assert_string_equal(ids(WHERE("State", "", "idle") WHERE("State", "conj=\"Or\"", "held")), "1 3 10");
}

static void elements_are_sorted(void **state)
{
        BUF_CLEANUP struct buf said = {0};

        (void)state;
        assert_string_equal(ids("<Get name=\"Amount\" op=\"Sort\"/>"), "10 3 2a 2 11 1");
        assert_string_equal(ids("<Get name=\"Amount\" op=\"Tros\"/>"), "1 11 2 2a 3 10");
        assert_string_equal(ids("<Get name=\"State\" op=\"Sort\"/><Get name=\"Id\" op=\"Tros\"/>"),
                            "11 3 10 1 2a 2");
        assert_int_equal(
                ask("Query", WHERE("Id", "op=\"LE\"", "2") "<Get name=\"Amount\" op=\"Sort\"/>", &said), 0);
        assert_string_equal(buf_z(&said), "2:<x><Amount>9</Amount></x><x><Amount>100</Amount></x>");
}

static void sums_are_computed(void **state)
{
        BUF_CLEANUP struct buf said = {0};

        (void)state;
        assert_int_equal(ask("Query",
                             "<Get name=\"User\" op=\"GroupBy\"/><Get name=\"Amount\" op=\"Sum\"/>"
                             "<Get name=\"Id\" op=\"Count\"/>",
                             &said),
                         0);
        assert_string_equal(buf_z(&said), "5:<x><User>amy@far</User><Amount>-5</Amount><Id>1</Id></x>"
                                          "<x><User>amy@lab</User><Amount>109</Amount><Id>2</Id></x>"
                                          "<x><User>bob@far</User><Amount>7</Amount><Id>1</Id></x>"
                                          "<x><User>bob@lab</User><Amount>9</Amount><Id>1</Id></x>"
                                          "<x><User>eve@lab</User><Id>1</Id></x>");
        assert_int_equal(
                ask("Query",
                    WHERE("Id", "op=\"LE\"",
                          "3") "<Get name=\"Amount\" op=\"Max\"/>"
                               "<Get name=\"Amount\" op=\"Min\"/><Get name=\"Amount\" op=\"Average\"/>"
                               "<Get name=\"User\" op=\"Max\"/>",
                    &said),
                0);
        assert_string_equal(buf_z(&said), "1:<x><Amount>100</Amount><Amount>-5</Amount>"
                                          "<Amount>27.75</Amount><User>bob@lab</User></x>");
        assert_int_equal(ask("Query",
                             WHERE("Id", "op=\"EQ\"", "none") "<Get name=\"Id\" op=\"Count\"/>"
                                                              "<Get name=\"Amount\" op=\"Sum\"/>",
                             &said),
                         0);
        assert_string_equal(buf_z(&said), "1:<x><Id>0</Id></x>");
}

static void what_is_wrong_is_refused(void **state)
{
        BUF_CLEANUP struct buf said = {0}, many = {0};
        static const char *const bad[] = {WHERE("Weather", "op=\"GT\"", "1"),
                                          WHERE("Weather", "", "1"),
                                          WHERE("Id", "group=\"1\"", "1"),
                                          WHERE("Id", "group=\"-1\"", "1"),
                                          WHERE("Id", "group=\"-1\"", "1") WHERE("Id", "group=\"1\"", "1"),
                                          WHERE("Id", "group=\"17\"", "1") WHERE("Id", "group=\"-17\"", "1"),
                                          "<Get name=\"Weather\" op=\"Sort\"/>",
                                          "<Get name=\"Id\"/><Get name=\"Amount\" op=\"Sum\"/>",
                                          "<Get name=\"Id\" op=\"Sort\"/><Get name=\"Amount\" op=\"Sum\"/>"};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(ask("Query", bad[i], &said), SSSRMAP_VALUE);
        assert_int_equal(ask("Query", WHERE("Id", "op=\"LIKE\"", "1"), &said), SSSRMAP_MALFORMED);
        assert_int_equal(ask("Query", WHERE("Id", "conj=\"Xor\"", "1"), &said), SSSRMAP_MALFORMED);
        assert_int_equal(ask("Query", WHERE("Id", "group=\"999\"", "1"), &said), SSSRMAP_MALFORMED);
        assert_int_equal(ask("Cancel", WHERE("State", "op=\"NE\"", "idle"), &said), SSSRMAP_VALUE);
        assert_int_equal(ask("Cancel", WHERE("State", "", "a") WHERE("State", "conj=\"Or\"", "b"), &said),
                         SSSRMAP_VALUE);
        assert_int_equal(ask("Cancel", "<Get name=\"Id\" op=\"Count\"/>", &said), SSSRMAP_VALUE);
        for (unsigned i = 0; i <= SSSRMAP_CONDITIONS_MAX; i++)
                buf_addz(&many, WHERE("Id", "conj=\"Or\"", "1"));
        assert_int_equal(ask("Query", buf_z(&many), &said), SSSRMAP_VALUE);
        buf_reset(&many);
        for (unsigned i = 0; i <= SSSRMAP_OPERATORS_MAX; i++)
                buf_addz(&many, "<Get name=\"Id\" op=\"Count\"/>");
        assert_int_equal(ask("Query", buf_z(&many), &said), SSSRMAP_VALUE);
}

/* A pattern that goes back at each letter of long texts ends at the limit, not after hours. */
static void expensive_conditions_end(void **state)
{
        static const char request[] =
                "<Envelope><Body><Request action=\"Query\" actor=\"amy\"><Object>Job</Object>" WHERE(
                        "Id", "op=\"Match\"",
                        "*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab") "</Request></"
                                                                                           "Body></Envelope>";
        static char text[65536];
        struct sssrmap_selection *s = NULL;
        BUF_CLEANUP struct buf out = {0};
        struct sssrmap_message m;
        struct err err = {""};
        size_t count;

        (void)state;
        memset(text, 'a', sizeof(text));
        assert_int_equal(sssrmap_read(str_of(request), schema, &m, &err), 0);
        assert_int_equal(sssrmap_request(&m, &err), 0);
        assert_int_equal(sssrmap_selection_new(&m, parameters, &fields, &s, &err), 0);
        for (unsigned i = 0; i < 1000; i++)
                sssrmap_selection_add(s, (const struct str[6]){{.p = text, .n = sizeof(text)}}, "x", &out);
        assert_int_equal(sssrmap_selection_end(s, "x", &out, &count, &err), SSSRMAP_FAILED);
        assert_int_equal(out.n, 0);
        sssrmap_selection_free(s);
        sssrmap_deinit(&m);
}

/* Elements that are equal in all that they are sorted by end at the limit, too. */
static void expensive_sorts_end(void **state)
{
        BUF_CLEANUP struct buf text = {0}, out = {0};
        struct sssrmap_selection *s = NULL;
        struct sssrmap_message m;
        struct err err = {""};
        size_t count = 0;

        (void)state;
        buf_addz(&text, "<Envelope><Body><Request action=\"Query\" actor=\"amy\"><Object>Job</Object>");
        for (unsigned i = 0; i < SSSRMAP_OPERATORS_MAX; i++)
                buf_addz(&text, "<Get name=\"Amount\" op=\"Sort\"/>");
        buf_addz(&text, "</Request></Body></Envelope>");
        assert_int_equal(sssrmap_read(buf_view(&text), schema, &m, &err), 0);
        assert_int_equal(sssrmap_request(&m, &err), 0);
        assert_int_equal(sssrmap_selection_new(&m, parameters, &fields, &s, &err), 0);
        for (unsigned i = 0; i < 100000; i++)
                sssrmap_selection_add(s, (const struct str[6]){[2] = STR("7")}, "x", &out);
        assert_int_equal(sssrmap_selection_end(s, "x", &out, &count, &err), SSSRMAP_FAILED);
        assert_int_equal(out.n, 0);
        sssrmap_selection_free(s);
        sssrmap_deinit(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(texts_and_numbers_are_compared),
                cmocka_unit_test(names_are_no_numbers),
                cmocka_unit_test(job_ids_are_two_numbers),
                cmocka_unit_test(patterns_match),
                cmocka_unit_test(conditions_are_joined),
                cmocka_unit_test(elements_are_sorted),
                cmocka_unit_test(sums_are_computed),
                cmocka_unit_test(what_is_wrong_is_refused),
                cmocka_unit_test(expensive_conditions_end),
                cmocka_unit_test(expensive_sorts_end),
        };
        int failed;

        if (xml_schema_new("sssrmap.xsd", str_make(sssrmap_schema_text, sssrmap_schema_size), &schema,
                           NULL) != 0)
                return 1;
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        xml_schema_free(schema);
        return failed;
}
