#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/job/macro.h"

static const struct {
        const char *name, *value;
        enum macro_found found;
} names[] = {
        {"x", "ex", MACRO_VALUE},
        {"y", "[$(x)]", MACRO_VALUE},
        {"which", "x", MACRO_VALUE},
        {"empty", "", MACRO_VALUE},
        {"loop", "$(loop2)", MACRO_VALUE},
        {"loop2", "$(LOOP)", MACRO_VALUE},
        {"literal", "$(x)", MACRO_FINAL},
        {"process", NULL, MACRO_LATE},
        {"index", "$(Process) + 1", MACRO_VALUE},
        {"list", "red, green,blue", MACRO_VALUE},
        {"price", "5$(DOLLAR)(x)", MACRO_VALUE},
        {"path", "/tmp/run.d/simulate.tar.gz", MACRO_VALUE},
        {"late_path", "in/$(Process).dat", MACRO_VALUE},
        {"Name", "abcdef", MACRO_VALUE},
        {"area", "$(two) * 6", MACRO_VALUE},
        {"two", "2", MACRO_VALUE},
        {"quoted", "say \"hi\" \\ there", MACRO_FINAL},
        {"bomb0", "0123456789012345678901234567890123456789", MACRO_VALUE},
        {"bomb1", "$(bomb0)$(bomb0)$(bomb0)$(bomb0)$(bomb0)$(bomb0)$(bomb0)$(bomb0)$(bomb0)$(bomb0)",
         MACRO_VALUE},
        {"bomb2", "$(bomb1)$(bomb1)$(bomb1)$(bomb1)$(bomb1)$(bomb1)$(bomb1)$(bomb1)$(bomb1)$(bomb1)",
         MACRO_VALUE},
        {"bomb3", "$(bomb2)$(bomb2)$(bomb2)$(bomb2)$(bomb2)$(bomb2)$(bomb2)$(bomb2)$(bomb2)$(bomb2)",
         MACRO_VALUE},
        {"bomb4", "$(bomb3)$(bomb3)$(bomb3)$(bomb3)$(bomb3)$(bomb3)$(bomb3)$(bomb3)$(bomb3)$(bomb3)",
         MACRO_VALUE},
        {"bomb5", "$(bomb4)$(bomb4)$(bomb4)$(bomb4)$(bomb4)$(bomb4)$(bomb4)$(bomb4)$(bomb4)$(bomb4)",
         MACRO_VALUE},
        {"bomb6", "$(bomb5)$(bomb5)$(bomb5)$(bomb5)$(bomb5)$(bomb5)$(bomb5)$(bomb5)$(bomb5)$(bomb5)",
         MACRO_VALUE},
};

static enum macro_found lookup(void *arg, struct str name, struct buf *out)
{
        (void)arg;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                if (str_ieqz(name, names[i].name)) {
                        if (names[i].value)
                                buf_addz(out, names[i].value);
                        return names[i].found;
                }
        }
        return MACRO_UNKNOWN;
}

static const char *environment(void *arg, const char *name)
{
        (void)arg;
        if (strcmp(name, "ODD") == 0)
                return "$(x)";
        return strcmp(name, "HOME") == 0 ? "/home/ann" : NULL;
}

static char last_missing[64];
static void missing(void *arg, struct str name)
{
        (void)arg;
        memcpy(last_missing, name.p, name.n);
        last_missing[name.n] = '\0';
}

static uint64_t seed;
static const struct macro_world world = {
        .lookup = lookup, .getenv = environment, .random = &seed, .cwd = "/home/dir", .missing = missing};

struct want {
        const char *text, *result;
};

static void check(const struct want *cases, size_t n, bool want_late)
{
        for (size_t i = 0; i < n; i++) {
                BUF_CLEANUP struct buf out = {0};
                struct err err = {{0}};
                bool late = !want_late;
                int r = macro_expand(&world, str_of(cases[i].text), &out, &late, &err);

                if (r)
                        fail_msg("%s: %s", cases[i].text, err.text);
                assert_string_equal(buf_z(&out), cases[i].result);
                if (late != want_late)
                        fail_msg("%s: late", cases[i].text);
        }
}
#define CHECK(cases, late) check((cases), sizeof(cases) / sizeof((cases)[0]), (late))

static void test_plain(void **state)
{
        static const struct want cases[] = {
                {"", ""},
                {"no macro", "no macro"},
                {"a$(x)b$(X)", "aexbex"},
                {"$(y)", "[ex]"},
                {"$($(which))", "ex"},
                {"$($(which)y:d)", "d"},
                {"$(nothing:d)", "d"},
                {"$(empty:d)", "d"},
                {"$(empty)", ""},
                {"$(nothing:$(y))", "[ex]"},
                {"$(nothing:f(1)g)", "f(1)g"},
                {"$(nothing:)", ""},
                {"$(literal)", "$(x)"},
                {"$(price)", "5$(x)"},
                {"$(dollar)HOME $(DOLLAR)", "$HOME $"},
        };

        (void)state;
        CHECK(cases, false);
}

static void test_left_alone(void **state)
{
        static const struct want cases[] = {
                {"$", "$"},
                {"costs $5", "costs $5"},
                {"$$(Memory) $$([ Memory * 2 ])", "$$(Memory) $$([ Memory * 2 ])"},
                {"$$([ $(two) ])", "$$([ 2 ])"},
                {"$(date +%s) $(ls $(x))", "$(date +%s) $(ls ex)"},
                {"$() ${x} $OTHER(x) $FOO(x)", "$() ${x} $OTHER(x) $FOO(x)"},
        };

        (void)state;
        CHECK(cases, false);
}

static void test_late(void **state)
{
        static const struct want cases[] = {
                {"out.$(Process).$(x)", "out.$(Process).ex"},
                {"$(Process:$(x))", "$(Process:ex)"},
                {"$INT(index,%04d)", "$INT($(Process) + 1,%04d)"},
                {"$INT(Process)", "$INT(Process)"},
                {"$(price)$(Process)", "5$(DOLLAR)(x)$(Process)"},
                {"$ENV(ODD)$(literal)$(Process)", "$(DOLLAR)(x)$(DOLLAR)(x)$(Process)"},
                {"$Fn(late_path)", "$Fn(in/$(Process).dat)"},
                {"$Fnx(Process)", "$Fnx(Process)"},
                {"$CHOICE(Process,list)", "$CHOICE(Process,red, green,blue)"},
                {"$CHOICE(two,a,b,c_$(Process))", "$CHOICE(2,a,b,c_$(Process))"},
                {"$SUBSTR(late_path,1,two)", "$SUBSTR(in/$(Process).dat,1,2)"},
                {"$(a$(Process):$(x))", "$(a$(Process):ex)"},
                {"$BASENAME(late_path,.dat)", "$BASENAME(in/$(Process).dat,.dat)"},
        };

        (void)state;
        CHECK(cases, true);
}

/* The examples of HTCondor's manual, "Function Macros". */
static void test_functions(void **state)
{
        static const struct want cases[] = {
                {"$CHOICE(0,a,b)$CHOICE(two,list)", "ablue"},
                {"$SUBSTR(Name, 2)", "cdef"},
                {"$SUBSTR(Name, 0, -2)", "abcd"},
                {"$SUBSTR(Name, 1, 3)", "bcd"},
                {"$SUBSTR(Name, -1)", "f"},
                {"<$SUBSTR(Name, 4, -3)>", "<>"},
                {"$SUBSTR(Name,-99,99)", "abcdef"},
                {"$INT(area)", "12"},
                {"$INT(area,%04d)", "0012"},
                {"$INT(area,Area=%d)", "Area=12"},
                {"$INT(area, 100%%: %x)", " 100%: c"},
                {"$INT((1+2)*3)", "9"},
                {"$INT(7.9)", "7"},
                {"$REAL(two)", "2"},
                {"$REAL(1.0/4)", "0.25"},
                {"$REAL(two,%.3f)", "2.000"},
                {"$REAL(two,%g)", "2.0"},
                {"$ENV(HOME)/x", "/home/ann/x"},
                {"$ENV(NOTHING:there)", "there"},
                {"$ENV(NOTHING)", "UNDEFINED"},
                {"$ENV(ODD)", "$(x)"},
                {"$RANDOM_INTEGER(4,4)", "4"},
                {"$RANDOM_CHOICE(same,same)", "same"},
        };

        (void)state;
        CHECK(cases, false);
}

static void test_file_parts(void **state)
{
        static const struct want cases[] = {
                {"$F(path)", "/tmp/run.d/simulate.tar.gz"},
                {"$Fp(path)", "/tmp/run.d/"},
                {"$Fpb(path)", "/tmp/run.d"},
                {"$Fd(path)", "run.d/"},
                {"$Fdb(path)", "run.d"},
                {"$Fdd(path)", "tmp/run.d/"},
                {"$Fddd(path)", "/tmp/run.d/"},
                {"$Fn(/tmp/simulate.exe)", "simulate"},
                {"$Fx(/tmp/simulate.exe)", ".exe"},
                {"$Fxb(/tmp/simulate.exe)", "exe"},
                {"<$Fx(/tmp.d/simulate)>", "<>"},
                {"$Fn(.bashrc)$Fx(.bashrc)", ".bashrc"},
                {"$Fnx(path)", "simulate.tar.gz"},
                {"$Fpn(path)", "/tmp/run.d/simulate.tar"},
                {"$Fdn(a/b/c.d)", "b/c"},
                {"$Fdnx(a/b/c.d)", "b/c.d"},
                {"<$Fp(plain.c)><$Fd(plain.c)>", "<><>"},
                {"$Fpnx(plain.c)", "plain.c"},
                {"$Fq(two words)", "\"two words\""},
                {"$Fqa(\"two words\")", "'two words'"},
                {"$Fnq(path)", "\"simulate.tar\""},
                {"$Ff(a.c)", "/home/dir/a.c"},
                {"$Ff(./a.c)", "/home/dir/a.c"},
                {"$Ff(/a.c)", "/a.c"},
                {"$Ffpb(a.c)", "/home/dir"},
                {"$Fw(a/b)$Fu(c\\d)", "a\\bc/d"},
                {"$DIRNAME(path)", "/tmp/run.d/"},
                {"$BASENAME(path)", "simulate.tar.gz"},
                {"$BASENAME(path, .tar.gz)", "simulate"},
                {"$BASENAME(path,.zip)", "simulate.tar.gz"},
        };

        (void)state;
        CHECK(cases, false);
}

static void test_wrong(void **state)
{
        static const char *const cases[] = {
                "$(x",
                "a $(nothing:b",
                "$INT(1",
                "$(loop)",
                "$INT(x)",
                "$INT(1,%s)",
                "$INT(1,%d%d)",
                "$INT(1,none)",
                "$INT(1,%)",
                "$INT(1,%*d)",
                "$INT(1,%n)",
                "$INT(1,%99999d)",
                "$REAL(1,%d)",
                "$INT(1e300)",
                "$CHOICE(5,a,b)",
                "$CHOICE(-1,a,b)",
                "$CHOICE(0)",
                "$CHOICE()",
                "$SUBSTR(Name)",
                "$SUBSTR(Name,a)",
                "$SUBSTR(Name,1,2,3)",
                "$RANDOM_INTEGER(4)",
                "$RANDOM_INTEGER(4,3)",
                "$RANDOM_INTEGER(1,3,0)",
                "$RANDOM_INTEGER(1,Process)",
                "$RANDOM_CHOICE()",
                "$EVAL(x)",
                "$($(y))",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                BUF_CLEANUP struct buf out = {0};
                struct err err = {{0}};

                buf_addz(&out, "kept");
                if (macro_expand(&world, str_of(cases[i]), &out, NULL, &err) != -EINVAL)
                        fail_msg("%s: accepted as %s", cases[i], buf_z(&out));
                assert_true(err.text[0]);
                assert_string_equal(buf_z(&out), "kept");
        }
}

static void test_too_big(void **state)
{
        BUF_CLEANUP struct buf out = {0}, small = {.max = 3};
        struct err err;

        (void)state;
        assert_int_equal(macro_expand(&world, STR("$(bomb6)"), &out, NULL, &err), -EMSGSIZE);
        assert_int_equal(macro_expand(&world, STR("$SUBSTR(bomb6,0,1)"), &out, NULL, &err), -EMSGSIZE);
        assert_int_equal(out.n, 0);
        assert_int_equal(macro_expand(&world, STR("$(Name)"), &small, NULL, &err), -EMSGSIZE);
}

static void test_expression(void **state)
{
        static const struct want cases[] = {
                {"1 + $(two)", "1 + 2"},
                {"\"a $(quoted)\" == $(two)", "\"a say \\\"hi\\\" \\\\ there\" == 2"},
                {"\"no macro \\n \\\" $5\"", "\"no macro \\n \\\" $5\""},
                {"$CHOICE(0,\"a\",\"b\") + \"$(x)\"", "\"a\" + \"ex\""},
                {"\"$(nothing:\\\"d\\\")\"", "\"\\\"d\\\"\""},
                {"\"tab\\t \\101 $(x)\"", "\"tab\\t A ex\""},
                {"\"open $(x)", "\"open $(x)"},
                {"", ""},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                BUF_CLEANUP struct buf out = {0};
                bool late = true;

                assert_int_equal(macro_expand_expression(&world, str_of(cases[i].text), &out, &late, NULL),
                                 0);
                assert_string_equal(buf_z(&out), cases[i].result);
                assert_false(late);
        }
}

static void test_missing(void **state)
{
        struct macro_world strict = world;
        BUF_CLEANUP struct buf out = {0};
        struct err err;

        (void)state;
        assert_int_equal(macro_expand(&world, STR("<$(absent)>"), &out, NULL, &err), 0);
        assert_string_equal(buf_z(&out), "<>");
        assert_string_equal(last_missing, "absent");
        strict.missing_is_error = true;
        assert_int_equal(macro_expand(&strict, STR("$(absent)"), &out, NULL, &err), -EINVAL);
        assert_non_null(strstr(err.text, "absent"));
        assert_int_equal(macro_expand(&strict, STR("$(absent:)"), &out, NULL, &err), 0);
}

static void test_bare_world(void **state)
{
        static const char *const cases[] = {"$ENV(HOME)", "$RANDOM_CHOICE(a,b)", "$RANDOM_INTEGER(1,2)",
                                            "$Ff(x)"};
        struct macro_world bare = {.lookup = lookup};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                BUF_CLEANUP struct buf out = {0};

                assert_int_equal(macro_expand(&bare, str_of(cases[i]), &out, NULL, NULL), -EINVAL);
        }
}

static void test_random(void **state)
{
        unsigned seen[9] = {0};

        (void)state;
        seed = 7;
        for (int i = 0; i < 500; i++) {
                BUF_CLEANUP struct buf out = {0};

                assert_int_equal(macro_expand(&world, STR("$RANDOM_INTEGER(0,8,2)"), &out, NULL, NULL), 0);
                assert_int_equal(out.n, 1);
                assert_in_range(out.p[0], '0', '8');
                seen[out.p[0] - '0']++;
        }
        for (int i = 0; i < 9; i++)
                assert_true(i % 2 ? seen[i] == 0 : seen[i] > 50);
}

static enum macro_found lookup_job(void *arg, struct str name, struct buf *out)
{
        if (!str_eqz(name, "Process"))
                return MACRO_UNKNOWN;
        if (!arg)
                return MACRO_LATE;
        buf_printf(out, "%u", *(unsigned *)arg);
        return MACRO_FINAL;
}

/* What is left to each job: everybody who expands it for a job gets the same, and two places in a text
 * differ. */
static void test_random_for_each_job(void **state)
{
        struct macro_world submit = {.lookup = lookup_job, .random = &seed, .random_late = true};
        struct macro_world job = {.lookup = lookup_job};
        BUF_CLEANUP struct buf text = {0}, again = {0};
        unsigned member, numbers[10] = {0}, differ = 0;
        bool late = false;

        (void)state;
        seed = 7;
        assert_int_equal(
                macro_expand(&submit,
                             STR("$RANDOM_INTEGER(0,9):$RANDOM_INTEGER(0,9):$RANDOM_CHOICE(a,b,$(DOLLAR))"),
                             &text, &late, NULL),
                0);
        assert_true(late && str_starts(buf_view(&text), STR("$JOB_INTEGER(")));
        assert_int_equal(macro_expand(&submit, buf_view(&text), &again, &late, NULL), 0);
        assert_true(str_eq(buf_view(&text), buf_view(&again)));
        job.arg = &member;
        for (member = 0; member < 1000; member++) {
                BUF_CLEANUP struct buf one = {0}, two = {0};

                assert_int_equal(macro_expand(&job, buf_view(&text), &one, &late, NULL), 0);
                assert_int_equal(macro_expand(&job, buf_view(&text), &two, &late, NULL), 0);
                assert_true(!late && one.n == 5 && str_eq(buf_view(&one), buf_view(&two)));
                numbers[one.p[0] - '0']++;
                differ += one.p[0] != one.p[2];
                assert_true(strchr("ab$", one.p[4]) != NULL);
        }
        for (int i = 0; i < 10; i++)
                assert_in_range(numbers[i], 60, 140);
        assert_in_range(differ, 850, 950);
}

static void test_present(void **state)
{
        (void)state;
        assert_true(macro_present(STR("a $(b)")));
        assert_true(macro_present(STR("$INT(3)")));
        assert_true(macro_present(STR("$Fn(x)")));
        assert_true(macro_present(STR("$$(a) $(b)")));
        assert_false(macro_present(STR("")));
        assert_false(macro_present(STR("$$(a) $$([b])")));
        assert_false(macro_present(STR("$5 $OTHER(x) $()")));
}

static void test_cut(void **state)
{
        static const char *const want[] = {"a", "$(b:c, d)", "", "$$([f(1, 2)])", "$F_x(b, c)", "(d", "e)"};
        struct str rest = STR("a , $(b:c, d),, $$([f(1, 2)]), $F_x(b, c), (d, e)"), one;

        (void)state;
        for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
                assert_true(macro_cut(&rest, ',', &one));
                assert_true(str_eqz(one, want[i]));
        }
        assert_false(macro_cut(&rest, ',', &one));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plain),
                cmocka_unit_test(test_left_alone),
                cmocka_unit_test(test_late),
                cmocka_unit_test(test_functions),
                cmocka_unit_test(test_file_parts),
                cmocka_unit_test(test_wrong),
                cmocka_unit_test(test_too_big),
                cmocka_unit_test(test_missing),
                cmocka_unit_test(test_bare_world),
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_random_for_each_job),
                cmocka_unit_test(test_present),
                cmocka_unit_test(test_cut),
                cmocka_unit_test(test_expression),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
