#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "catalog/query.h"

static struct catalog_query *parse(const char *text)
{
        struct catalog_query *q = NULL;
        struct err err = {0};

        if (catalog_query_parse(str_of(text), &q, &err) != 0)
                fail_msg("%s: %s", text, err.text);
        return q;
}

static struct catalog_value text(const char *t)
{
        return (struct catalog_value){.type = CATALOG_TEXT, .text = str_of(t)};
}
static struct catalog_value integer(int64_t i)
{
        return (struct catalog_value){.type = CATALOG_INTEGER, .integer = i};
}
static struct catalog_value real(double d)
{
        return (struct catalog_value){.type = CATALOG_REAL, .real = d};
}

static bool holds(const char *query, struct catalog_value v)
{
        struct catalog_query *q = parse(query);
        bool r;

        assert_int_equal(q->condition_count, 1);
        r = catalog_condition_holds(&q->conditions[0], &v);
        catalog_query_free(q);
        return r;
}

/* The query of SUMS's own example. */
static void reads_the_example(void **state)
{
        struct catalog_query *q =
                parse("production=P04ik, trgsetupname=proHigh,filetype=daq_reco_MuDst ,tpc=1,"
                      "storage!=hpss,runnumber=>5000,limit=100,");

        (void)state;
        assert_int_equal(q->condition_count, 6);
        assert_int_equal(q->limit, 100);
        assert_true(str_eq(q->conditions[1].name, STR("trgsetupname")));
        assert_true(str_eq(q->conditions[2].operands[0].text, STR("daq_reco_MuDst")));
        assert_int_equal(q->conditions[4].key, CATALOG_STORE);
        assert_int_equal(q->conditions[4].op, CATALOG_UNEQUAL);
        assert_int_equal(q->conditions[5].op, CATALOG_AT_LEAST);
        catalog_query_free(q);
}

static void compares(void **state)
{
        (void)state;
        assert_true(holds("a=P04ik", text("p04IK")));
        assert_false(holds("a=P04ik", text("P04ij")));
        assert_true(holds("a!=P04ik", text("P04ij")));
        assert_true(holds("a=x||y || z", text("z")));
        assert_false(holds("a!=x||y", text("y")));
        assert_true(holds("a=5", integer(5)));
        assert_true(holds("a=5.0", integer(5)));
        assert_true(holds("a=5", real(5)));
        assert_false(holds("a=five", integer(5)));
        assert_true(holds("a!=five", integer(5)));
        assert_true(holds("a=>5000", integer(5000)));
        assert_false(holds("a>5000", integer(5000)));
        assert_true(holds("a=<-3", integer(-3)));
        assert_true(holds("a<1e3", integer(999)));
        assert_false(holds("a>word", integer(7)));
        /* Numbers that a double cannot tell apart. */
        assert_false(holds("a=9007199254740993", integer(9007199254740992)));
        assert_true(holds("a=9007199254740993", integer(9007199254740993)));
        assert_true(holds("a=TRUE", (struct catalog_value){.type = CATALOG_BOOLEAN, .boolean = true}));
        assert_true(holds("a=1", (struct catalog_value){.type = CATALOG_BOOLEAN, .boolean = true}));
        assert_false(holds("a='true'", (struct catalog_value){.type = CATALOG_BOOLEAN, .boolean = true}));
}

static void ranges_and_patterns(void **state)
{
        (void)state;
        assert_true(holds("a[]5000-6000", integer(6000)));
        assert_false(holds("a[]5000-6000", integer(6001)));
        assert_true(holds("a][5000-6000", integer(4999)));
        assert_true(holds("a[]-5--1", integer(-5)));
        assert_false(holds("a[]-5--1", integer(0)));
        assert_true(holds("a[]1-2||5-6", integer(5)));
        assert_true(holds("a=10..20", real(10.5)));
        assert_false(holds("a!=10..20", integer(20)));
        assert_true(holds("a=st_*_raw_?", text("ST_physics_raw_1")));
        assert_false(holds("a=st_*_raw_?", text("st_physics_raw_12")));
        assert_true(holds("a='st_*'", text("st_*")));
        assert_false(holds("a='st_*'", text("st_1")));
        assert_true(holds("a~phys", text("st_PHYSICS")));
        assert_true(holds("a!~phys", text("cosmic")));
        assert_true(holds("name=A*", text("Abc")));
        assert_false(holds("name=A*", text("abc")));
        assert_true(holds("a='x,y'", text("x,y")));
        assert_true(holds("a=it's", text("it's")));
        /* A pattern that would take exponential time if every star were tried again. */
        assert_false(
                holds("a=*a*a*a*a*a*a*a*a*a*a*a*b",
                      text("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")));
}

static void words_of_its_own(void **state)
{
        struct catalog_query *q = parse("dataset=muons/2024,limit=0,x=1,where= runnumber > 5, 7 && tpc == 1");

        (void)state;
        assert_true(str_eq(q->dataset, STR("muons/2024")));
        assert_int_equal(q->limit, 0);
        assert_int_equal(q->condition_count, 1);
        assert_true(str_eq(q->where, STR("runnumber > 5, 7 && tpc == 1")));
        catalog_query_free(q);
        q = parse("");
        assert_int_equal(q->condition_count, 0);
        catalog_query_free(q);
        assert_true(catalog_key_is_valid(STR("tpc")));
        assert_false(catalog_key_is_valid(STR("Storage")));
        assert_false(catalog_key_is_valid(STR("2x")));
        assert_false(catalog_key_is_valid(STR("a-b")));
        assert_false(catalog_key_is_valid(STR("")));
}

static void refuses(const char *text, const char *says)
{
        struct catalog_query *q = NULL;
        struct err err = {0};

        assert_int_equal(catalog_query_parse(str_of(text), &q, &err), CATALOG_INVALID);
        assert_null(q);
        if (!strstr(err.text, says))
                fail_msg("%s: %s", text, err.text);
}

static void says_what_is_wrong(void **state)
{
        MEM_CLEANUP char *many = mem_alloc(CATALOG_QUERY_MAX + 2);

        (void)state;
        refuses("production", "not a condition");
        refuses("=5", "not a condition");
        refuses("a b=5", "not a condition");
        refuses("a=1,b=", "value is missing");
        refuses("a=1||", "value is missing");
        refuses("a[]5000", "a range is two numbers");
        refuses("a[]x-y", "a range is two numbers");
        refuses("limit=many", "a number of files");
        refuses("limit>5", "followed by =");
        refuses("dataset=a,dataset=b", "one dataset");
        refuses("dataset=", "needs the name");
        refuses("where=", "needs an expression");
        memset(many, 'a', CATALOG_QUERY_MAX + 1);
        many[CATALOG_QUERY_MAX + 1] = '\0';
        refuses(many, "bytes");
        many[600] = '\0';
        for (size_t i = 0; i < 600; i++)
                many[i] = "a=1,"[i % 4];
        refuses(many, "more than 100 conditions");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_the_example),   cmocka_unit_test(compares),
                cmocka_unit_test(ranges_and_patterns), cmocka_unit_test(words_of_its_own),
                cmocka_unit_test(says_what_is_wrong),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
