/* What evaluations are charged: each function takes steps for the work that it does, whatever its arguments
 * are. bench_steps measures the same in time. */
#include "classad/functions.h"
#include "classad/test_help.h"

#define LONG       524288u /* bytes of the long texts, members of the long lists */
#define CORE_STEPS 20000u  /* what the core allows */

static void put_long(struct buf *out, const char *piece)
{
        for (size_t n = 0; n < LONG; n += strlen(piece))
                buf_addz(out, piece);
}

static void set_long(struct world *w, const char *name, const char *piece)
{
        struct buf text BUF_CLEANUP = {0};

        put_long(&text, piece);
        ad_set_string(w->my, world_symbol(w, name), buf_view(&text));
}

static uint32_t steps_of(struct world *w, const char *text)
{
        w->ev.steps = 0;
        world_eval(w, text);
        return w->ev.steps;
}

/* Every function that is given a long text takes the steps for looking at it, as each of its arguments. */
static void test_long_texts_in_all_functions(void **state)
{
        static const char *const pieces[] = {"a", "1", " ", ",", "a ", "A=1 ", "A=1;", "1.5,", "a@", "'"};
        unsigned tried = 0;
        struct world w;

        (void)state;
        world_init(&w, "[]", NULL);
        w.ev.steps_max = 100000000;
        for (size_t p = 0; p < sizeof(pieces) / sizeof(*pieces); p++) {
                set_long(&w, "s", pieces[p]);
                for (unsigned i = 0; i < functions_count; i++) {
                        const struct function *f = &functions[i];
                        unsigned most = f->args_max < 4 ? f->args_max : 4;

                        for (unsigned argc = f->args_min; !f->lazy && argc <= most; argc++) {
                                for (unsigned at = 0; at < argc; at++) {
                                        struct buf call BUF_CLEANUP = {0};

                                        buf_printf(&call, "%s(", f->name);
                                        for (unsigned k = 0; k < argc; k++)
                                                buf_printf(&call, "%s%s", k ? ", " : "",
                                                           k == at ? "s" : "\"a\"");
                                        buf_addz(&call, ")");
                                        if (steps_of(&w, buf_z(&call)) < LONG / RUN_TEXT)
                                                fail_msg("%s of \"%s\"... takes %u steps", buf_z(&call),
                                                         pieces[p], w.ev.steps);
                                        tried++;
                                }
                        }
                }
        }
        assert_true(tried > 1000);
        world_deinit(&w);
}

/* So does what walks a list, or prints one. */
static void test_long_lists(void **state)
{
        static const struct {
                const char *text;
                uint32_t steps;
        } rows[] = {
                {"sum(l)", LONG / 2},
                {"avg(l)", LONG / 2},
                {"min(l)", LONG / 2},
                {"member(7, l)", LONG / 2},
                {"identicalMember(7, l)", LONG / 2},
                {"anyCompare(\"<\", l, 0)", LONG / 2},
                {"allCompare(\"<\", l, 9)", LONG / 2},
                {"quantize(7, l)", LONG / 2},
                {"join(\",\", l)", LONG / 2},
                {"string(l)", LONG / RUN_PRINT},
                {"unparse(l)", LONG / RUN_PRINT},
                {"strcat(l)", LONG / RUN_PRINT},
                {"size(split(s))", LONG / RUN_TEXT},
                {"sum(split(s))", LONG / RUN_TEXT},
                {"listToArgs(split(t))", LONG / 8},
                {"countMatches(1, split(s))", LONG / 2},
                {"unresolved(l)", LONG / 2},
                {"mergeEnvironment(e)", LONG / 4},
                {"eval(s)", LONG / 8},
                {"s == s", LONG / RUN_TEXT},
                {"s < s", LONG / RUN_TEXT},
                {"s =?= s", LONG / RUN_TEXT},
                {"[ x = 1 ][s]", LONG / RUN_TEXT},
                {"o", LONG / 64},
                {"string(big)", 10000},
                {"versioncmp(s, s) + versioncmp(s, s)", 2 * LONG / RUN_TEXT},
        };
        struct buf list BUF_CLEANUP = {0}, either BUF_CLEANUP = {0}, big BUF_CLEANUP = {0};
        struct world w;

        (void)state;
        world_init(&w, "[ n = undefined; yes = false ]", NULL);
        w.ev.steps_max = 100000000;
        w.ev.bytes_max = 1u << 30;
        set_long(&w, "s", "1 ");
        set_long(&w, "t", "abcdefg ");
        set_long(&w, "e", "A=1 ");
        buf_addz(&list, "{ 1");
        buf_addz(&either, "yes");
        buf_addz(&big, "[ b0 = 1");
        for (unsigned i = 1; i < LONG / 2; i++)
                buf_addz(&list, ", 1");
        for (unsigned i = 1; i < LONG / 2; i++)
                buf_addz(&either, " || yes");
        for (unsigned i = 1; i < 90000; i++)
                buf_printf(&big, "; b%u = 1", i);
        buf_addz(&list, " }");
        buf_addz(&big, " ]");
        assert_int_equal(ad_set_text(w.my, world_symbol(&w, "l"), buf_view(&list), NULL), 0);
        assert_int_equal(ad_set_text(w.my, world_symbol(&w, "o"), buf_view(&either), NULL), 0);
        assert_int_equal(ad_set_text(w.my, world_symbol(&w, "big"), buf_view(&big), NULL), 0);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
                if (steps_of(&w, rows[i].text) < rows[i].steps)
                        fail_msg("%s takes %u steps, not %u", rows[i].text, w.ev.steps, rows[i].steps);
        world_deinit(&w);
}

/* Nothing that is printed, copied or searched for longer than the steps last. */
static void test_what_steps_end(void **state)
{
        static const char *const rows[] = {
                "regexp(\"(?:a?){12}[bc]d\", t)",
                "regexp(\"(a*)*+[bc]d\", t)",
                "regexp(\"a*[bc]d\", t)",
                "regexp(\"(?:a{40}c?)*+bd\", t)",
                "regexp(\"a{4000}b?cd\", t)",
                "regexp(\"(a*+)\\\\1[bc]d\", t)",
                "regexp(\"(?=(a*))[bc]d\", t)",
                "regexp(\"[^b]*bd\", t)",
                "regexps(\"(?:a?){12}[bc]d\", t, \"\")",
                "replace(\"(?:a?){12}[bc]d\", t, \"\")",
                "replaceAll(\"\", t, t)",
                "regexpMember(\"(?:a?){12}[bc]d\", { t })",
                "stringList_regexpMember(\"(?:a?){12}[bc]d\", strcat(\"a d, \", t))",
                "string(w)",
                "strcat(w, w)",
                "stringListsIntersect(v, v)",
                "versioncmp(s, s) + versioncmp(s, s) + versioncmp(s, s) + versioncmp(s, s) + versioncmp(s, "
                "s) + "
                "versioncmp(s, s)",
        };
        struct buf many BUF_CLEANUP = {0}, items BUF_CLEANUP = {0}, list BUF_CLEANUP = {0};
        struct world w;

        (void)state;
        world_init(&w, "[]", NULL);
        w.ev.steps_max = CORE_STEPS;
        set_long(&w, "s", "1");
        for (unsigned i = 0; i < 10000; i++)
                buf_addz(&many, "a");
        buf_addz(&many, "d");
        for (unsigned i = 0; i < 4000; i++)
                buf_printf(&items, "%u ", i + 10000);
        ad_set_string(w.my, world_symbol(&w, "t"), buf_view(&many));
        ad_set_string(w.my, world_symbol(&w, "v"), buf_view(&items));
        buf_addz(&list, "{ 1");
        for (unsigned i = 0; i < LONG / 2; i++)
                buf_addz(&list, ",1");
        buf_addz(&list, " }");
        assert_int_equal(ad_set_text(w.my, world_symbol(&w, "w"), buf_view(&list), NULL), 0);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                uint64_t overruns = w.ev.overruns;

                world_check(&w, rows[i], "error");
                if (!w.ev.limit_hit || strcmp(w.ev.limit_hit, "steps") != 0)
                        fail_msg("%s is ended by %s", rows[i], w.ev.limit_hit ? w.ev.limit_hit : "no limit");
                assert_int_equal(w.ev.overruns, overruns + 1);
        }
        world_deinit(&w);
}

/* Calls that share have the limit together; what comes behind has its own again. */
static void test_calls_that_share(void **state)
{
        struct world w;
        uint32_t one;

        (void)state;
        world_init(&w, "[]", NULL);
        one = steps_of(&w, "1 + time() * 0");
        w.ev.steps_max = 3 * one;
        for (unsigned round = 0; round < 2; round++) {
                eval_share(&w.ev);
                for (unsigned i = 0; i < 3; i++)
                        world_check(&w, "1 + time() * 0", "1");
                world_check(&w, "1 + time() * 0", "error");
                assert_string_equal(w.ev.limit_hit, "steps");
                eval_share_end(&w.ev);
                assert_int_equal(w.ev.steps_max, 3 * one);
                assert_int_equal(w.ev.overruns, round + 1);
                world_check(&w, "1 + time() * 0", "1");
        }
        world_deinit(&w);
}

/* What people write stays far from the limits. */
static void test_ordinary_calls_take_few_steps(void **state)
{
        static const char *const rows[] = {
                "regexp(\"^node[0-9]+\\\\.cern\\\\.ch$\", \"node1234.cern.ch\")",
                "regexp(\"(^|,)(atlas|cms|lhcb)(,|$)\", \"alice,belle,lhcb,other\", \"i\")",
                "stringListMember(\"cms\", \"alice, atlas, cms, lhcb\")",
                "versionGE(\"5.14.0-362.el9\", \"4.18\")",
                "formatTime(time(), \"%Y-%m-%d %H:%M\")",
                "strcat(\"a\", 1, \"b\") == \"a1b\" && substr(\"abc\", 1) == \"bc\"",
        };
        struct world w;

        (void)state;
        world_init(&w, "[]", NULL);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                uint32_t steps = steps_of(&w, rows[i]);

                assert_null(w.ev.limit_hit);
                if (steps > 100)
                        fail_msg("%s takes %u steps", rows[i], steps);
        }
        world_deinit(&w);
}

/* Patterns and subjects that are too long are errors without being looked at. */
static void test_regexp_caps(void **state)
{
        struct world w;

        (void)state;
        world_init(&w, "[]", NULL);
        set_long(&w, "s", "a");
        world_check(&w, "regexp(\"^a\", s)", "error");
        world_check(&w, "regexp(s, \"a\")", "error");
        world_check(&w, "regexp(\"^a\", substr(s, 0, 65536))", "true");
        world_check(&w, "regexp(substr(s, 0, 65536), \"a\")", "error");
        world_check(&w, "regexp(substr(s, 0, 4000), \"a\")", "false");
        world_deinit(&w);
}

static uint64_t test_clock; /* each look at it is a millisecond */
static uint64_t read_clock(void)
{
        return test_clock += 1000000;
}

static void test_the_clock(void **state)
{
        struct buf many BUF_CLEANUP = {0};
        struct world w;

        (void)state;
        world_init(&w, "[ l = {1,2,3,4,5,6,7,8,9,10} ]", NULL);
        w.ev.clock_ns = read_clock;
        w.ev.steps_max = 100000000;
        test_clock = 1;
        world_check(&w, "1 + size(l) < 20", "true");
        assert_int_equal(test_clock, 1); /* who takes few steps doesn't ask */
        buf_addz(&many, "{ 1");
        for (unsigned i = 1; i < LONG; i++)
                buf_addz(&many, ",1");
        buf_addz(&many, " }");
        assert_int_equal(ad_set_text(w.my, world_symbol(&w, "m"), buf_view(&many), NULL), 0);
        world_check(&w, "sum(m)", "error");
        assert_string_equal(w.ev.limit_hit, "time");
        assert_in_range(test_clock, 51 * 1000000, 53 * 1000000);
        assert_in_range(w.ev.overruns, 1, 1);
        set_long(&w, "t", "aaaaaaaad");
        world_check(&w, "regexp(\"(?:a?){12}[bc]d\", substr(t, 0, 60000))", "error");
        assert_string_equal(w.ev.limit_hit, "time"); /* asked within a search, too */
        world_check(&w, "1 + size(l) < 20", "true");
        assert_null(w.ev.limit_hit); /* the next call has its own time */
        w.ev.time_max_ns = 1000000000;
        world_check(&w, "sum(m)", "524288");
        world_deinit(&w);
}

/* The sums that a caller bounds many evaluations by. */
static void test_sums(void **state)
{
        struct world w;
        uint64_t before;

        (void)state;
        world_init(&w, "[ a = 1 ]", NULL);
        world_check(&w, "a + a", "2");
        before = w.ev.steps_all;
        assert_true(before > 0);
        world_check(&w, "a + a + a", "3");
        assert_int_equal(w.ev.steps_all, before + w.ev.steps);
        assert_int_equal(w.ev.overruns, 0);
        world_deinit(&w);
}

/* Ads within attributes that refer to one another: looking for the names is linear. */
static void test_hidden_names(void **state)
{
        struct buf ad BUF_CLEANUP = {0};
        struct world w;

        (void)state;
        world_init(&w, "[ c0 = [ p = q; q = 1; r = c1 ]; c1 = [ p = 2; s = q + p ] ]", NULL);
        /* q is bound in c0, but not where c1 stands */
        world_check(&w, "unresolved(c0)", "\"q\"");
        world_deinit(&w);
        buf_addz(&ad, "[ e = 0");
        for (unsigned i = 0; i < 20000; i++)
                buf_printf(&ad, "; c%u = [ x%u = %s%u ]", i, i, i ? "c" : "free", i ? i - 1 : i);
        buf_addz(&ad, " ]");
        world_init(&w, buf_z(&ad), NULL);
        world_check(&w, "unresolved(c1000)", "\"free0\"");
        world_deinit(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_long_texts_in_all_functions),
                cmocka_unit_test(test_long_lists),
                cmocka_unit_test(test_what_steps_end),
                cmocka_unit_test(test_calls_that_share),
                cmocka_unit_test(test_ordinary_calls_take_few_steps),
                cmocka_unit_test(test_regexp_caps),
                cmocka_unit_test(test_the_clock),
                cmocka_unit_test(test_sums),
                cmocka_unit_test(test_hidden_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
