#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/condor/ads.h"
#include "cli/condor/columns.h"

#define AD                                                                                                   \
        "{\"ClusterId\":7,\"ProcId\":3,\"Owner\":\"al\\\"ice\",\"Wall\":0.25,\"Whole\":2.0,\"Yes\":true,"    \
        "\"Old\":-5,"                                                                                        \
        "\"Req\":\"/Expr(TARGET.Cpus >= ProcId && true)/\",\"Two\":\"/Expr(ProcId + ClusterId)/\","          \
        "\"List\":[1,\"a\"],\"Nested\":{\"x\":1},\"Odd\":\"/Expression\",\"At\":90061}"

struct given {
        struct symbols *symbols;
        struct ad *ad;
        struct columns columns;
        struct buf out;
};

static void start(struct given *g)
{
        *g = (struct given){.symbols = symbols_new()};
        g->ad = ads_read(g->symbols, view_of(STR(AD)));
        columns_init(&g->columns, g->symbols, 1000);
}

static void end(struct given *g)
{
        columns_deinit(&g->columns);
        ad_free(g->ad);
        symbols_free(g->symbols);
        buf_deinit(&g->out);
}

static void autoformat_is(const char *qualifiers, const char *expected, const char *const *words)
{
        struct given g;
        size_t n = 0;

        start(&g);
        while (words[n])
                n++;
        assert_int_equal(columns_auto(&g.columns, qualifiers, words, n, NULL), 0);
        columns_row(&g.columns, g.ad, "7.3", &g.out);
        columns_end(&g.columns, &g.out);
        assert_string_equal(buf_z(&g.out), expected);
        end(&g);
}
#define IS(qualifiers, expected, ...)                                                                        \
        autoformat_is(qualifiers, expected, (const char *const[]){__VA_ARGS__, NULL})

static void autoformat(void **state)
{
        (void)state;
        IS(NULL, "7 al\"ice undefined\n", "ClusterId", "Owner", "Nothing");
        IS(NULL, "0.25 2.0 true -5\n", "Wall", "Whole", "Yes", "Old");
        IS(NULL, "10 10 false\n", "Two", "ProcId+ClusterId", "Owner == \"bob\"");
        IS(NULL, "undefined /Expression\n", "Req", "Odd");
        IS("r", "TARGET.Cpus >= ProcId && true undefined 3\n", "Req", "Nothing", "ProcId");
        IS("j", "7.3 7\n", "ClusterId");
        IS("V", "\"al\\\"ice\" 7\n", "Owner", "ClusterId");
        IS("l", "ClusterId = 7 ProcId = 3\n", "ClusterId", "ProcId");
        IS("lrng", "ClusterId = 7\nProcId = 3\n\n", "ClusterId", "ProcId");
        IS(",", "7, 3\n", "ClusterId", "ProcId");
        IS("t", "7\t3\n", "ClusterId", "ProcId");
        IS("n", "7\n3\n", "ClusterId", "ProcId");
        IS("T", "1+01:01:01\n", "At");
        IS("jh", "ID  ClusterId Owner\n7.3 7         al\"ice\n", "ClusterId", "Owner");
        IS(NULL, "{ 1,\"a\" } 1\n", "List", "Nested.x");
}

static void autoformat_refuses(void **state)
{
        struct given g;
        struct err err;

        (void)state;
        start(&g);
        assert_int_not_equal(columns_auto(&g.columns, "q", (const char *const[]){"A"}, 1, &err), 0);
        assert_int_not_equal(columns_auto(&g.columns, "n,", (const char *const[]){"A"}, 1, &err), 0);
        assert_int_not_equal(columns_auto(&g.columns, "lh", (const char *const[]){"A"}, 1, &err), 0);
        assert_int_not_equal(columns_auto(&g.columns, NULL, (const char *const[]){"A +"}, 1, &err), 0);
        assert_non_null(strstr(err.text, "A +"));
        end(&g);
}

static void format_is(const char *format, const char *text, const char *expected)
{
        struct given g;

        start(&g);
        assert_int_equal(columns_format(&g.columns, format, text, NULL), 0);
        columns_row(&g.columns, g.ad, "7.3", &g.out);
        assert_string_equal(buf_z(&g.out), expected);
        end(&g);
}

static void format(void **state)
{
        (void)state;
        format_is("%d\\n", "ClusterId", "7\n");
        format_is("%5d|%%", "ClusterId", "    7|%");
        format_is("%-5d|", "Wall", "0    |");
        format_is("<%s>", "Owner", "<al\"ice>");
        format_is("%s", "Two", "10");
        format_is("%V\\t", "Owner", "\"al\\\"ice\"\t");
        format_is("%6.2f", "Wall", "  0.25");
        format_is("%r", "Two", "ProcId + ClusterId");
        format_is("x %s y", "Nothing", "");
        format_is("%d", "Owner", "");
        format_is("%lld %d", "ClusterId", "7 %d");
        format_is("%n", "ClusterId", "");
        format_is("%", "ClusterId", "");
        format_is("none", "ClusterId", "none");
        format_is("%99999999999999999999d", "Nothing", "");
        format_is("%*d", "ClusterId", "");
}

static void only_what_is_needed_is_asked_for(void **state)
{
        struct given g;

        (void)state;
        start(&g);
        assert_int_equal(columns_auto(&g.columns, "j", (const char *const[]){"JobStatus", "owner"}, 2, NULL),
                         0);
        columns_names(&g.columns, &g.out);
        assert_string_equal(buf_z(&g.out), "ClusterId,ProcId,JobStatus,owner");
        assert_int_equal(columns_auto(&g.columns, NULL, (const char *const[]){"Requirements"}, 1, NULL), 0);
        buf_reset(&g.out);
        columns_names(&g.columns, &g.out);
        assert_string_equal(buf_z(&g.out), "*");
        end(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(autoformat),
                cmocka_unit_test(autoformat_refuses),
                cmocka_unit_test(format),
                cmocka_unit_test(only_what_is_needed_is_asked_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
