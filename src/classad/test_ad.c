#include "classad/test_help.h"

#include <stdlib.h>

#include "base/err.h"

static const char *ad_text(struct world *w, const struct ad *ad)
{
        buf_reset(&w->out);
        ad_print(&w->out, ad, CLASSAD_NEW, false);
        return buf_z(&w->out);
}

static void test_trim(void **state)
{
        struct world w;
        struct ad *ad, *parent, *same;
        char text[400];

        (void)state;
        world_init(&w, NULL, NULL);
        parent = ad_new(w.symbols);
        ad = ad_new(w.symbols);
        ad_set_parent(ad, parent);
        for (unsigned i = 0; i < 40; i++) { /* enough for an index, with waste */
                char name[8];

                snprintf(name, sizeof(name), "n%u", i % 20);
                assert_int_equal(ad_set_text(ad, world_symbol(&w, name), STR("n1 + n2 * \"a text\""), NULL),
                                 0);
                ad_set_integer(ad, world_symbol(&w, name), i);
        }
        ad_set_string(ad, world_symbol(&w, "n3"), STR("x"));
        snprintf(text, sizeof(text), "%s", ad_text(&w, ad));
        ad = ad_trim(ad);
        assert_string_equal(ad_text(&w, ad), text);
        assert_ptr_equal(ad_parent(ad), parent);
        same = ad_trim(ad); /* it is so already */
        assert_ptr_equal(same, ad);
        ad_set_string(ad, world_symbol(&w, "n3"), STR("another text"));
        ad_set_integer(ad, world_symbol(&w, "more"), 1);
        assert_int_equal(ad_count(ad), 21);
        ad_remove(ad, world_symbol(&w, "more"));
        ad_set_string(ad, world_symbol(&w, "n3"), STR("x"));
        ad = ad_trim(ad);
        assert_string_equal(ad_text(&w, ad), text);
        ad_free(ad);
        ad_free(ad_trim(ad_new(w.symbols)));
        ad_free(parent);
        world_deinit(&w);
}

static void test_set_and_replace(void **state)
{
        struct world w;
        struct ad *ad;
        struct value v;

        (void)state;
        world_init(&w, NULL, NULL);
        ad = ad_new(w.symbols);
        assert_int_equal(ad_count(ad), 0);
        assert_string_equal(ad_text(&w, ad), "[  ]");
        ad_set_integer(ad, world_symbol(&w, "a"), 1);
        ad_set_real(ad, world_symbol(&w, "b"), 0.5);
        ad_set_boolean(ad, world_symbol(&w, "c"), true);
        ad_set_string(ad, world_symbol(&w, "d"), STR("a \"text\" that is long"));
        ad_set_undefined(ad, world_symbol(&w, "e"));
        assert_int_equal(ad_set_text(ad, world_symbol(&w, "f"), STR("a + 1"), NULL), 0);
        assert_string_equal(
                ad_text(&w, ad),
                "[ a = 1; b = 5.000000000000000E-01; c = true; d = \"a \\\"text\\\" that is long\";"
                " e = undefined; f = a + 1 ]");
        ad_set_string(ad, world_symbol(&w, "A"), STR("x")); /* replaces, whatever the case */
        ad_set_integer(ad, world_symbol(&w, "f"), -7);
        assert_int_equal(ad_count(ad), 6);
        assert_true(ad_literal(ad, world_symbol(&w, "a"), &v));
        assert_int_equal(v.type, VALUE_STRING);
        assert_true(ad_literal(ad, world_symbol(&w, "F"), &v));
        assert_int_equal(v.integer, -7);
        assert_false(ad_literal(ad, world_symbol(&w, "none"), &v));
        ad_remove(ad, world_symbol(&w, "b"));
        ad_remove(ad, world_symbol(&w, "none"));
        assert_int_equal(ad_count(ad), 5);
        assert_null(ad_find(ad, world_symbol(&w, "b")));
        ad_free(ad);
        ad_free(NULL);
        world_deinit(&w);
}

static void test_text_that_is_wrong_changes_nothing(void **state)
{
        struct world w;
        struct err err;

        (void)state;
        world_init(&w, "[ a = 1 ]", NULL);
        assert_int_equal(ad_set_text(w.my, world_symbol(&w, "a"), STR("1 +"), &err), CLASSAD_SYNTAX);
        assert_non_null(strstr(err.text, "line 1"));
        assert_string_equal(ad_text(&w, w.my), "[ a = 1 ]");
        world_deinit(&w);
}

static void test_literal_sees_through_folding(void **state)
{
        struct world w;
        struct value v;

        (void)state;
        world_init(&w, "[ a = 2 * 1024; b = -5; c = x; d = { 1 } ]", NULL);
        assert_true(ad_literal(w.my, world_symbol(&w, "a"), &v));
        assert_int_equal(v.integer, 2048);
        assert_true(ad_literal(w.my, world_symbol(&w, "b"), &v));
        assert_int_equal(v.integer, -5);
        assert_false(ad_literal(w.my, world_symbol(&w, "c"), &v));
        assert_false(ad_literal(w.my, world_symbol(&w, "d"), &v));
        assert_string_equal(ad_text(&w, w.my), "[ a = 2 * 1024; b = -5; c = x; d = { 1 } ]");
        world_deinit(&w);
}

/* Many attributes, replaced many times: found, in order, and memory does not grow with the number of changes.
 */
static void test_many_changes(void **state)
{
        struct world w;
        struct ad *ad;
        char name[32], text[64];
        struct value v;
        size_t bytes = 0;

        (void)state;
        world_init(&w, NULL, NULL);
        ad = ad_new(w.symbols);
        for (int round = 0; round < 60; round++) {
                for (int i = 0; i < 200; i++) {
                        snprintf(name, sizeof(name), "attr%d", i);
                        snprintf(text, sizeof(text), "this is round %d of %d", round, i);
                        if ((i + round) % 3 == 0)
                                ad_set_string(ad, world_symbol(&w, name), str_of(text));
                        else if ((i + round) % 3 == 1)
                                assert_int_equal(
                                        ad_set_text(ad, world_symbol(&w, name), STR("x + 5 > 3 || y"), NULL),
                                        0);
                        else
                                ad_set_integer(ad, world_symbol(&w, name), round);
                }
                if (round == 10)
                        bytes = ad_bytes(ad);
        }
        assert_true(ad_bytes(ad) < bytes * 2);
        assert_int_equal(ad_count(ad), 200);
        for (int i = 0; i < 200; i++) {
                snprintf(name, sizeof(name), "ATTR%d", i);
                assert_non_null(ad_find_own(ad, world_symbol(&w, name)));
                if ((i + 59) % 3 == 2) {
                        assert_true(ad_literal(ad, world_symbol(&w, name), &v));
                        assert_int_equal(v.integer, 59);
                }
        }
        for (int i = 0; i < 200; i += 2) {
                snprintf(name, sizeof(name), "attr%d", i);
                ad_remove(ad, world_symbol(&w, name));
        }
        for (int i = 0; i < 200; i++) {
                snprintf(name, sizeof(name), "attr%d", i);
                assert_int_equal(ad_find(ad, world_symbol(&w, name)) != NULL, i % 2);
        }
        ad_free(ad);
        world_deinit(&w);
}

static void test_string_of_the_same_ad(void **state)
{
        struct world w;
        struct value v;

        (void)state;
        world_init(&w, "[ a = \"a text that stands in the ad's own code\" ]", NULL);
        for (int i = 0; i < 20; i++) {
                assert_true(ad_literal(w.my, world_symbol(&w, "a"), &v));
                ad_set_string(w.my, world_symbol(&w, "a"), v.string);
        }
        assert_string_equal(ad_text(&w, w.my), "[ a = \"a text that stands in the ad's own code\" ]");
        world_deinit(&w);
}

static void test_parents(void **state)
{
        struct world w;
        struct ad *child;
        struct value v;
        struct buf all BUF_CLEANUP = {0};

        (void)state;
        world_init(&w, "[ a = 1; b = a + x; c = 3 ]", NULL);
        child = test_ad(w.symbols, "[ x = 10; a = 2 ]");
        assert_null(ad_parent(child));
        ad_set_parent(child, w.my);
        assert_ptr_equal(ad_parent(child), w.my);
        assert_non_null(ad_find(child, world_symbol(&w, "c")));
        assert_null(ad_find_own(child, world_symbol(&w, "c")));
        assert_int_equal(ad_count(child), 2);
        eval_attr(&w.ev, child, NULL, world_symbol(&w, "b"), &v); /* the parent's expression, in the child */
        assert_int_equal(v.integer, 12);
        ad_print(&all, child, CLASSAD_OLD, true);
        assert_string_equal(buf_z(&all), "a = 2\nb = a + x\nc = 3\nx = 10\n");
        ad_remove(child, world_symbol(&w, "a"));
        eval_attr(&w.ev, child, NULL, world_symbol(&w, "b"), &v);
        assert_int_equal(v.integer, 11);
        ad_remove(child, world_symbol(&w, "c")); /* not from the parent */
        assert_non_null(ad_find(child, world_symbol(&w, "c")));
        ad_free(child);
        world_deinit(&w);
}

static void test_dup(void **state)
{
        struct world w;
        struct ad *copy, *again;
        struct buf one BUF_CLEANUP = {0};

        (void)state;
        world_init(&w,
                   "[ a = 1; b = { a, [ c = \"a longer text here\" ] }; d = a && (b || !c); e = f(x)[2].y ]",
                   NULL);
        ad_print(&one, w.my, CLASSAD_NEW, false);
        copy = ad_dup(w.my);
        assert_null(ad_parent(copy));
        ad_set_integer(w.my, world_symbol(&w, "a"), 5);
        assert_string_equal(ad_text(&w, copy), buf_z(&one));
        ad_set_parent(copy, w.my);
        again = ad_dup(copy);
        assert_ptr_equal(ad_parent(again), w.my);
        ad_free(again);
        ad_set_parent(copy, NULL);
        ad_set_expr(copy, world_symbol(&w, "b2"), ad_find(copy, world_symbol(&w, "b")));
        ad_remove(copy, world_symbol(&w, "b"));
        assert_string_equal(ad_text(&w, copy), "[ a = 1; d = a && (b || !c); e = f(x)[2].y;"
                                               " b2 = { a,[ c = \"a longer text here\" ] } ]");
        ad_free(copy);
        world_deinit(&w);
}

static void test_next_is_in_order(void **state)
{
        static const char *const names[] = {"z", "a", "m"};
        const struct expr *e;
        struct world w;
        uint32_t at = 0;
        symbol name;

        (void)state;
        world_init(&w, "[ z = 1; a = 2; m = 3; Z = 4 ]", NULL);
        for (int i = 0; i < 3; i++) {
                assert_true(ad_next(w.my, &at, &name, &e));
                assert_true(str_eqz(symbols_name(w.symbols, name), names[i]));
                assert_ptr_equal(e, ad_find(w.my, name));
        }
        assert_false(ad_next(w.my, &at, &name, &e));
        world_deinit(&w);
}

static void test_too_many_attributes(void **state)
{
        struct buf text BUF_CLEANUP = {0};
        struct symbols *s = symbols_new();
        struct ad *ad;
        struct err err;

        (void)state;
        for (int i = 0; i <= CLASSAD_ATTRIBUTES_MAX; i++)
                buf_printf(&text, "a%d=1\n", i);
        assert_int_equal(ad_parse(s, buf_view(&text), CLASSAD_ANY, &ad, &err), CLASSAD_TOO_BIG);
        assert_non_null(strstr(err.text, "100000"));
        symbols_free(s);
}

static void test_symbols(void **state)
{
        struct symbols *s = symbols_new();
        symbol a = symbols_intern(s, STR("Alpha")), many[2000];
        char name[32];

        (void)state;
        assert_int_not_equal(a, 0);
        assert_int_equal(symbols_intern(s, STR("aLPHA")), a);
        assert_int_equal(symbols_find(s, STR("ALPHA")), a);
        assert_int_equal(symbols_find(s, STR("alph")), 0);
        assert_true(str_eqz(symbols_name(s, a), "Alpha"));
        /* characters that the hash's way of folding case makes alike */
        assert_int_not_equal(symbols_intern(s, STR("a@b")), symbols_intern(s, STR("a`b")));
        for (int i = 0; i < 2000; i++) {
                snprintf(name, sizeof(name), "name_number_%d", i);
                many[i] = symbols_intern(s, str_of(name));
        }
        for (int i = 0; i < 2000; i++) {
                snprintf(name, sizeof(name), "NAME_number_%d", i);
                assert_int_equal(symbols_find(s, str_of(name)), many[i]);
        }
        assert_true(symbols_count(s) >= 2000);
        symbols_free(s);
        symbols_free(NULL);
}

/* Names belong to those who use them, are forgotten with the last one, and charged to who brought them. */
static void test_names_are_forgotten(void **state)
{
        struct symbols *s = symbols_new();
        struct symbols_use *ann = symbols_use_new(s, STR("ann")), *bob = symbols_use_new(s, STR("bob")),
                           *again;
        uint32_t before = symbols_used(s);
        symbol ours, both;
        struct ad *ad;
        struct err err;

        (void)state;
        assert_null(symbols_use_set(s, ann));
        ours = symbols_intern(s, STR("OfAnn"));
        both = symbols_intern(s, STR("OfBoth"));
        assert_ptr_equal(symbols_use_set(s, bob), ann);
        assert_int_equal(symbols_intern(s, STR("ofboth")), both);
        symbols_use_set(s, NULL);
        assert_int_equal(symbols_used(s), before + 2);
        symbols_use_limit(ann, 2);
        symbols_use_limit(bob, 2);
        assert_true(symbols_use_full(ann));
        assert_false(symbols_use_full(bob));
        symbols_use_set(s, ann); /* at the limit old names may be used, and no new ones */
        assert_int_equal(ad_parse(s, STR("[a = Alpha]"), CLASSAD_NEW, &ad, &err), CLASSAD_TOO_BIG);
        assert_int_equal(ad_parse(s, STR("[OfBoth = OfAnn]"), CLASSAD_NEW, &ad, &err), 0);
        ad_free(ad);
        symbols_use_set(s, NULL);
        symbols_use_free(ann);
        assert_int_equal(symbols_find(s, STR("OfAnn")), 0);
        assert_int_equal(symbols_find(s, STR("OfBoth")), both);
        again = symbols_use_new(s, STR("ann")); /* what bob has of hers is hers still */
        symbols_use_limit(again, 1);
        assert_true(symbols_use_full(again));
        symbols_use_set(s, bob);
        assert_int_not_equal(symbols_intern(s, STR("Other")),
                             ours); /* its number is not given again at once */
        symbols_use_set(s, NULL);
        symbols_keep(s, both);
        assert_false(symbols_use_full(again));
        symbols_use_free(bob);
        symbols_use_free(again);
        assert_int_equal(symbols_find(s, STR("OfBoth")), both);
        assert_int_equal(symbols_used(s), before + 1);
        symbols_free(s);
}

/* Another spelling of a long name is charged and forgotten as a name is. */
static void test_spellings_are_forgotten(void **state)
{
        static const char first[] = "a_name_of_more_than_thirty_two_letters",
                          other[] = "A_name_of_more_than_thirty_two_letterS",
                          third[] = "a_name_of_more_than_thirty_two_LETTERS";
        struct symbols *s = symbols_new();
        struct symbols_use *ann = symbols_use_new(s, STR("ann")), *bob = symbols_use_new(s, STR("bob"));
        uint32_t before = symbols_used(s), spelling;
        struct ad *ad;
        struct err err;
        symbol name;

        (void)state;
        symbols_use_set(s, ann);
        name = symbols_intern(s, str_of(first));
        assert_int_equal(symbols_spelling(s, name, str_of(first)), 0);
        symbols_use_set(s, bob);
        assert_int_equal(symbols_intern(s, str_of(other)), name);
        assert_false(symbols_known(s, str_of(other)));
        spelling = symbols_spelling(s, name, str_of(other));
        assert_int_not_equal(spelling, 0);
        assert_int_equal(symbols_spelling(s, name, str_of(other)), spelling);
        assert_true(symbols_known(s, str_of(other)));
        assert_int_equal(symbols_find(s, str_of(other)), name);
        assert_int_equal(symbols_used(s), before + 2);
        symbols_use_limit(bob, 1);
        assert_true(symbols_use_full(bob));
        assert_int_equal(ad_set_text(ad = ad_new(s), name, str_of(third), &err), CLASSAD_TOO_BIG);
        assert_int_equal(ad_set_text(ad, name, str_of(other), &err), 0);
        ad_free(ad);
        symbols_use_set(s, NULL);
        symbols_use_free(ann); /* bob has the name yet, whose first spelling stays */
        assert_int_equal(symbols_find(s, str_of(third)), name);
        assert_int_equal(symbols_used(s), before + 2);
        symbols_use_free(bob);
        assert_int_equal(symbols_find(s, str_of(first)), 0);
        assert_int_equal(symbols_used(s), before);
        symbols_free(s);
}

/* Three million names in turn, a thousand of them at once: the table finds what is there, and only that. */
static void test_names_come_and_go(void **state)
{
        struct symbols *s = symbols_new();
        struct symbols_use *uses[10] = {NULL};
        uint32_t most = 0;
        char name[32];

        (void)state;
        for (int i = 0; i < 30000; i++) {
                struct symbols_use **u = &uses[i % 10];

                symbols_use_free(*u);
                *u = symbols_use_new(s, STR("ann"));
                symbols_use_set(s, *u);
                for (int k = 0; k < 100; k++) {
                        snprintf(name, sizeof(name), "n%d_%d", i, k);
                        symbols_intern(s, str_of(name));
                }
                symbols_use_set(s, NULL);
                for (int back = 0; back < 12 && back <= i; back++) {
                        snprintf(name, sizeof(name), "N%d_%d", i - back, 57);
                        assert_int_equal(symbols_find(s, str_of(name)) != 0, back < 10);
                }
                if (i == 10000)
                        most = symbols_count(s);
        }
        assert_int_equal(symbols_count(s), most);
        for (int i = 0; i < 10; i++)
                symbols_use_free(uses[i]);
        symbols_free(s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_trim),
                cmocka_unit_test(test_set_and_replace),
                cmocka_unit_test(test_names_are_forgotten),
                cmocka_unit_test(test_spellings_are_forgotten),
                cmocka_unit_test(test_names_come_and_go),
                cmocka_unit_test(test_text_that_is_wrong_changes_nothing),
                cmocka_unit_test(test_literal_sees_through_folding),
                cmocka_unit_test(test_many_changes),
                cmocka_unit_test(test_string_of_the_same_ad),
                cmocka_unit_test(test_parents),
                cmocka_unit_test(test_dup),
                cmocka_unit_test(test_next_is_in_order),
                cmocka_unit_test(test_too_many_attributes),
                cmocka_unit_test(test_symbols),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
