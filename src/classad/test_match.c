/* Matches and their explanation, clauses, references, the typed shorthands, and the limits of evaluation. */
#include "classad/test_help.h"

static void check_match(const char *left, const char *right, enum match expect)
{
        struct world w;

        world_init(&w, left, right);
        if (match_ads(&w.ev, w.my, w.target) != expect)
                fail_msg("%s against %s is %d", left, right, (int)match_ads(&w.ev, w.my, w.target));
        assert_int_equal(match_one_way(&w.ev, w.my, w.target), expect != MATCH_LEFT_REFUSES);
        world_deinit(&w);
}

static void test_two_sides(void **state)
{
        (void)state;
        check_match("[ Requirements = true ]", "[ requirements = true ]", MATCH_YES);
        check_match("[ Requirements = 1 ]", "[ requirements = 0.5 ]", MATCH_YES);
        check_match("[ Requirements = 0 ]", "[ requirements = true ]", MATCH_LEFT_REFUSES);
        check_match("[ Requirements = true ]", "[ requirements = false ]", MATCH_RIGHT_REFUSES);
        check_match("[ Requirements = false ]", "[ requirements = false ]", MATCH_LEFT_REFUSES);
        check_match("[ a = 1 ]", "[ requirements = true ]", MATCH_LEFT_REFUSES);
        check_match("[ Requirements = undefined ]", "[ requirements = true ]", MATCH_LEFT_REFUSES);
        check_match("[ Requirements = error ]", "[ requirements = true ]", MATCH_LEFT_REFUSES);
        check_match("[ Requirements = \"true\" ]", "[ requirements = true ]", MATCH_LEFT_REFUSES);
        check_match("[ Requirements = TARGET.Memory >= RequestMemory; RequestMemory = 10 ]",
                    "[ Requirements = TARGET.RequestMemory <= Memory; Memory = 10 ]", MATCH_YES);
        check_match("[ Requirements = Memory >= RequestMemory; RequestMemory = 11 ]",
                    "[ Requirements = true; Memory = 10 ]", MATCH_LEFT_REFUSES);
}

static void test_rank(void **state)
{
        struct world w;

        (void)state;
        world_init(&w, "[ Rank = TARGET.Mips * 2 ]", "[ Mips = 21; Rank = \"best\" ]");
        assert_true(match_rank(&w.ev, w.my, w.target) == 42);
        assert_true(match_rank(&w.ev, w.target, w.my) == 0);
        ad_set_text(w.my, world_symbol(&w, "Rank"), STR("nosuch + 1"), NULL);
        assert_true(match_rank(&w.ev, w.my, w.target) == 0);
        ad_set_text(w.my, world_symbol(&w, "Rank"), STR("real(\"NaN\")"), NULL);
        assert_true(match_rank(&w.ev, w.my, w.target) == 0);
        ad_set_boolean(w.my, world_symbol(&w, "Rank"), true);
        assert_true(match_rank(&w.ev, w.my, w.target) == 1);
        ad_remove(w.my, world_symbol(&w, "Rank"));
        assert_true(match_rank(&w.ev, w.my, w.target) == 0);
        world_deinit(&w);
}

static void test_first_refusal(void **state)
{
        struct world w;
        struct value v;
        unsigned clauses;
        const struct expr *e;

        (void)state;
        world_init(&w, "[ Requirements = (TARGET.a == 1) && ((b || c) && TARGET.d > 5) && (true); b = true ]",
                   "[ a = 1; d = 3 ]");
        e = ad_find(w.my, world_symbol(&w, "Requirements"));
        assert_int_equal(expr_clause_count(e), 4);
        assert_int_equal(match_first_refusal(&w.ev, w.my, w.target, &clauses, &v), 2);
        assert_int_equal(clauses, 4);
        assert_int_equal(v.type, VALUE_BOOLEAN);
        expr_print_clause(&w.out, e, 2, w.symbols);
        assert_string_equal(buf_z(&w.out), "TARGET.d > 5");
        buf_reset(&w.out);
        expr_print_clause(&w.out, e, 0, w.symbols);
        assert_string_equal(buf_z(&w.out), "TARGET.a == 1"); /* without its parentheses */
        eval_clause(&w.ev, e, 1, w.my, w.target, &v);
        assert_true(value_is_true(&v));
        ad_set_integer(w.target, world_symbol(&w, "d"), 6);
        assert_int_equal(match_first_refusal(&w.ev, w.my, w.target, &clauses, &v), -1);
        ad_remove(w.target, world_symbol(&w, "d"));
        assert_int_equal(match_first_refusal(&w.ev, w.my, w.target, &clauses, &v), 2);
        assert_int_equal(v.type, VALUE_UNDEFINED);
        assert_int_equal(match_first_refusal(&w.ev, w.target, w.my, &clauses, &v), 0);
        assert_int_equal(clauses, 0);
        world_deinit(&w);
}

/* Values are borrowed from the ads or the arena; what is no string or list takes none of it. */
static void test_numbers_allocate_nothing(void **state)
{
        struct world w;
        struct value v;

        (void)state;
        world_init(&w,
                   "[ a = 5; r = (a + 1) * 2 > TARGET.b && !(a == 7) || isUndefined(c) ? 1.5 : pow(a, 2) ]",
                   "[ b = 3 ]");
        eval_attr(&w.ev, w.my, w.target, world_symbol(&w, "r"), &v);
        assert_int_equal(v.type, VALUE_REAL);
        assert_int_equal(w.ev.arena.used, 0);
        assert_null(w.ev.arena.head);
        world_deinit(&w);
}

static void test_shorthands(void **state)
{
        struct world w;
        bool b = false;
        int64_t i = -1;
        double d = -1;
        struct str s = STR("unchanged");

        (void)state;
        world_init(&w, "[ t = true; i = 7; r = 2.9; s = \"text\"; c = strcat(s, \"!\"); x = error ]", NULL);
        assert_true(eval_boolean(&w.ev, w.my, NULL, world_symbol(&w, "i"), &b) && b);
        assert_true(eval_integer(&w.ev, w.my, NULL, world_symbol(&w, "r"), &i) && i == 2);
        assert_true(eval_real(&w.ev, w.my, NULL, world_symbol(&w, "t"), &d) && d == 1);
        assert_false(eval_boolean(&w.ev, w.my, NULL, world_symbol(&w, "s"), &b));
        assert_false(eval_integer(&w.ev, w.my, NULL, world_symbol(&w, "x"), &i));
        assert_false(eval_real(&w.ev, w.my, NULL, world_symbol(&w, "none"), &d));
        assert_false(eval_string(&w.ev, w.my, NULL, world_symbol(&w, "i"), &s));
        assert_true(str_eqz(s, "unchanged"));
        assert_true(eval_string(&w.ev, w.my, NULL, world_symbol(&w, "c"), &s));
        assert_true(str_eqz(s, "text!"));
        world_deinit(&w);
}

static void test_steps_and_memory_are_bounded(void **state)
{
        struct buf text BUF_CLEANUP = {0};
        struct world w;

        (void)state;
        buf_addz(&text, "[ a0 = 1; s0 = \"0123456789abcdef\"");
        for (int i = 1; i <= 60; i++)
                buf_printf(&text, "; a%d = a%d + a%d; s%d = strcat(s%d, s%d)", i, i - 1, i - 1, i, i - 1,
                           i - 1);
        buf_addz(&text, " ]");
        world_init(&w, buf_z(&text), NULL);
        world_check(&w, "a10", "1024");
        assert_null(w.ev.limit_hit);
        world_check(&w, "a60", "error");
        assert_string_equal(w.ev.limit_hit, "steps");
        world_check(&w, "size(s10)", "16384");
        world_check(&w, "size(s50)", "error");
        assert_non_null(w.ev.limit_hit);
        w.ev.bytes_max = 10000;
        world_check(&w, "size(s10)", "error");
        assert_string_equal(w.ev.limit_hit, "memory");
        world_check(&w, "member(1, {2, 1})", "true");
        w.ev.steps_max = 3;
        world_check(&w, "a3", "error");
        world_check(&w, "1 + 1", "2");
        world_deinit(&w);
}

static void test_long_texts_cost_steps(void **state)
{
        struct buf big BUF_CLEANUP = {0};
        struct world w;

        (void)state;
        world_init(&w, "[ small = \"text\" ]", NULL);
        for (int i = 0; i < 10000; i++)
                buf_addz(&big, "sixbyt");
        ad_set_string(w.my, world_symbol(&w, "big"), buf_view(&big));
        w.ev.steps_max = 500;
        world_check(&w, "big == big", "true");
        world_check(&w, "anyCompare(\"!=\", { small, small, small, small }, small)", "false");
        world_check(&w, "anyCompare(\"!=\", { big, big, big, big }, big)", "error");
        assert_string_equal(w.ev.limit_hit, "steps");
        world_check(&w, "size(split(big)) + size(split(big))", "error");
        w.ev.steps_max = 5000;
        world_check(&w, "anyCompare(\"!=\", { big, big, big, big }, big)", "false");
        world_check(&w, "size(split(big)) + size(split(big))", "2");
        world_deinit(&w);
}

/* Names are never freed, so eval() may not teach a table new ones without end. */
static void test_eval_names_are_bounded(void **state)
{
        struct world w;
        struct value v;
        uint32_t before;

        (void)state;
        world_init(&w,
                   "[ i = 0; known = 5; e = isError(eval(strcat(\"fresh\", i))); k = eval(\"known + 1\") ]",
                   NULL);
        before = symbols_count(w.symbols);
        for (int i = 0; i < 15000; i++) {
                ad_set_integer(w.my, world_symbol(&w, "i"), i);
                eval_attr(&w.ev, w.my, NULL, world_symbol(&w, "e"), &v);
                assert_int_equal(v.type, VALUE_BOOLEAN);
                assert_int_equal(v.boolean, i >= 10000);
                eval_reset(&w.ev);
        }
        assert_int_equal(symbols_count(w.symbols), before + 10000);
        eval_attr(&w.ev, w.my, NULL, world_symbol(&w, "k"), &v);
        assert_int_equal(v.integer, 6);
        world_deinit(&w);
}

struct told {
        struct world *w;
        struct buf own, target;
};

static void tell(void *arg, symbol name, bool target)
{
        struct told *t = arg;
        struct buf *out = target ? &t->target : &t->own;

        buf_addz(out, out->n ? " " : "");
        buf_str(out, symbols_name(t->w->symbols, name));
}

static void check_references(const char *ad, const char *expr, const char *own, const char *target, bool time,
                             bool random)
{
        struct world w;
        struct told t = {.w = &w};
        struct expr_uses uses;
        struct expr *e;

        world_init(&w, ad, NULL);
        assert_int_equal(expr_parse(w.symbols, str_of(expr), &e, NULL), 0);
        expr_references(e, w.my, tell, &t, &uses);
        assert_string_equal(buf_z(&t.own), own);
        assert_string_equal(buf_z(&t.target), target);
        assert_int_equal(uses.uses_time, time);
        assert_int_equal(uses.uses_random, random);
        expr_free(e);
        buf_deinit(&t.own);
        buf_deinit(&t.target);
        world_deinit(&w);
}

static void test_references(void **state)
{
        (void)state;
        check_references("[ a = 1 ]", "a > TARGET.b && TARGET.b < a", "a", "b", false, false);
        check_references("[ a = b + TARGET.x; b = c; c = 1 ]", "a", "a b c", "x", false, false);
        check_references("[ a = b; b = a ]", "MY.a", "a b", "", false, false);
        check_references("[ a = 1 ]", "free + MY.absent", "free absent", "free", false, false);
        check_references("[ a = time() ]", "a > 5", "a", "", true, false);
        check_references("[]", "CurrentTime > 5 || random() > 0.5", "", "", true, true);
        check_references("[]", "other.x + target.y", "", "x y", false, false);
        check_references("[]", "[ p = q; r = p ].r", "q", "q", false, false);
        check_references("[ l = { v, { w } } ]", "l[i]", "l v w i", "v w i", false, false);
        check_references("[]", "formatTime(5, \"%c\") == formatTime()", "", "", true, false);
        check_references("[]", "1 + 2 == 3", "", "", false, false);
}

static bool uses_more(const char *expr)
{
        struct world w;
        struct told t = {.w = &w};
        struct expr_uses uses;
        struct expr *e;

        world_init(&w, "[ a = 1; n = [ x = 1 ] ]", NULL);
        assert_int_equal(expr_parse(w.symbols, str_of(expr), &e, NULL), 0);
        expr_references(e, w.my, tell, &t, &uses);
        expr_free(e);
        buf_deinit(&t.own);
        buf_deinit(&t.target);
        world_deinit(&w);
        return uses.uses_more;
}

static void test_references_that_cannot_be_told(void **state)
{
        (void)state;
        assert_false(uses_more("TARGET.x > MY.a && other.y && self.a && n.x == parent.a"));
        assert_true(uses_more("TARGET[\"x\"] == 1"));
        assert_true(uses_more("size(my) > 1"));
        assert_true(uses_more("eval(\"TARGET.x\")"));
        assert_true(uses_more("unresolved(a)"));
        assert_true(uses_more("evalInEachContext(x, { n }) == 1"));
}

/* A name behind more references than are followed is not told, and that is. */
static void test_references_too_deep(void **state)
{
        struct world w;
        struct told t = {.w = &w};
        struct expr_uses uses;
        struct buf text BUF_CLEANUP = {0};
        struct expr *e;

        (void)state;
        buf_addz(&text, "[ ");
        for (unsigned i = 0; i < 5000; i++)
                buf_printf(&text, "a%u = a%u; ", i, i + 1);
        buf_addz(&text, "a5000 = ProcId ]");
        world_init(&w, buf_z(&text), NULL);
        assert_int_equal(expr_parse(w.symbols, STR("a0 > 5"), &e, NULL), 0);
        expr_references(e, w.my, tell, &t, &uses);
        assert_true(uses.uses_more);
        expr_free(e);
        buf_deinit(&t.own);
        buf_deinit(&t.target);
        world_deinit(&w);
}

static void test_references_of_one_clause(void **state)
{
        struct world w;
        struct told t = {.w = &w};
        struct expr_uses uses;
        const struct expr *e;

        (void)state;
        world_init(&w, "[ a = 1; Requirements = TARGET.x > a && (time() > 1 && TARGET.y) ]", NULL);
        e = ad_find(w.my, world_symbol(&w, "Requirements"));
        assert_int_equal(expr_clause_count(e), 3);
        expr_clause_references(e, 0, w.my, tell, &t, &uses);
        assert_string_equal(buf_z(&t.own), "a");
        assert_string_equal(buf_z(&t.target), "x");
        assert_false(uses.uses_time);
        expr_clause_references(e, 1, w.my, tell, &t, &uses);
        assert_true(uses.uses_time);
        expr_clause_references(e, 2, w.my, tell, &t, &uses);
        assert_string_equal(buf_z(&t.target), "x y");
        buf_deinit(&t.own);
        buf_deinit(&t.target);
        world_deinit(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_two_sides),
                cmocka_unit_test(test_rank),
                cmocka_unit_test(test_first_refusal),
                cmocka_unit_test(test_numbers_allocate_nothing),
                cmocka_unit_test(test_shorthands),
                cmocka_unit_test(test_steps_and_memory_are_bounded),
                cmocka_unit_test(test_long_texts_cost_steps),
                cmocka_unit_test(test_eval_names_are_bounded),
                cmocka_unit_test(test_references),
                cmocka_unit_test(test_references_that_cannot_be_told),
                cmocka_unit_test(test_references_too_deep),
                cmocka_unit_test(test_references_of_one_clause),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
