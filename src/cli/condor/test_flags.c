#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/condor/condor.h"

#define READ(tool, ...) read_words(&f, tool, (const char *const[]){__VA_ARGS__, NULL}, &err)

static int read_words(struct flags *f, const struct condor_tool *tool, const char *const *words,
                      struct err *err)
{
        int n = 0;

        while (words[n])
                n++;
        return flags_read(f, tool, n, words, err);
}

static void names_may_be_cut_short(void **state)
{
        struct flags f;
        struct err err;

        (void)state;
        assert_int_equal(READ(&condor_q, "-cons", "x", "--nobatch", "-l"), 0);
        assert_string_equal(flags_text(&f, "constraint"), "x");
        assert_true(flags_has(&f, "nobatch") && flags_has(&f, "long") && !flags_has(&f, "json"));
        flags_deinit(&f);
        /* -n alone is -name, which wants a value. */
        assert_int_not_equal(READ(&condor_q, "-n"), 0);
        assert_int_equal(READ(&condor_q, "-nob"), 0);
        assert_true(flags_has(&f, "nobatch"));
        flags_deinit(&f);
        assert_int_equal(READ(&condor_submit, "-a", "x = 1", "-append", "y = 2", "-t"), 0);
        assert_int_equal(f.given_count, 3);
        assert_string_equal(flags_text(&f, "append"), "y = 2");
        flags_deinit(&f);
        assert_int_equal(READ(&condor_rm, "-a"), 0);
        assert_true(flags_has(&f, "all"));
        flags_deinit(&f);
}

static void autoformat_takes_words_up_to_the_next_flag(void **state)
{
        const struct flag_given *g;
        struct flags f;
        struct err err;
        size_t at = 0;

        (void)state;
        assert_int_equal(READ(&condor_q, "7", "-af:jr", "JobStatus", "Owner", "-limit", "-1", "8.0"), 0);
        g = flags_next(&f, "af", &at);
        assert_non_null(g);
        assert_string_equal(g->colon, "jr");
        assert_int_equal(g->count, 2);
        assert_string_equal(g->words[1], "Owner");
        assert_int_equal(f.word_count, 2);
        assert_string_equal(f.words[1], "8.0");
        assert_string_equal(flags_text(&f, "limit"), "-1");
        flags_deinit(&f);
        assert_int_equal(READ(&condor_q, "-format", "%d\\n", "ClusterId", "-"), 0);
        at = 0;
        g = flags_next(&f, "format", &at);
        assert_true(g && g->count == 2);
        assert_string_equal(f.words[0], "-");
        flags_deinit(&f);
}

static void what_is_not_supported_is_named(void **state)
{
        BUF_CLEANUP struct buf out = {0};
        struct flags f;
        struct err err;

        (void)state;
        assert_int_not_equal(READ(&condor_q, "-better-analyze"), 0);
        assert_non_null(strstr(err.text, "-better-analyze"));
        assert_int_not_equal(READ(&condor_q, "-nosuch"), 0);
        assert_non_null(strstr(err.text, "-nosuch"));
        assert_int_not_equal(READ(&condor_q, "-format", "%d"), 0);
        assert_int_not_equal(READ(&condor_q, "-af"), 0);
        assert_int_not_equal(READ(&condor_q, "-pool", "elsewhere.example.org:9618"), 0);
        assert_non_null(strstr(err.text, "elsewhere"));
        assert_int_not_equal(READ(&condor_wait, "a", "b", "c"), 0);
        assert_int_not_equal(READ(&condor_wait, "-status"), 0);
        assert_int_equal(READ(&condor_q, "-pool", "localhost:9618", "-debug", "-wide"), 0);
        flags_warnings(&f, &out);
        assert_string_equal(buf_z(&out), "-debug is not acted on. There is nothing to be shown.\n");
        flags_deinit(&f);
        assert_int_equal(READ(&condor_wait, "-help"), 0);
        flags_deinit(&f);
}

static void numbers_are_numbers(void **state)
{
        struct flags f;
        struct err err;
        int64_t n;

        (void)state;
        assert_int_equal(READ(&condor_history, "-match", "12", "-limit", "x"), 0);
        assert_int_equal(flags_number(&f, "match", 0, &n, &err), 0);
        assert_int_equal(n, 12);
        assert_int_equal(flags_number(&f, "scanlimit", 7, &n, &err), 0);
        assert_int_equal(n, 7);
        assert_int_not_equal(flags_number(&f, "limit", 0, &n, &err), 0);
        flags_deinit(&f);
}

static const char *tables_fail(const struct condor_tool *tool)
{
        const struct flag_row *a, *b;

        for (size_t i = 0; (a = flags_row_at(tool, i)); i++) {
                if (!a->text || a->min > strlen(a->name) || (a->form != FLAG_PLAIN) != (a->value != NULL) ||
                    a->text[strlen(a->text) - 1] != '.')
                        return a->name;
                for (size_t k = i + 1; (b = flags_row_at(tool, k)); k++)
                        if (strcmp(a->name, b->name) == 0)
                                return a->name;
        }
        return NULL;
}

static void tables_are_sound(void **state)
{
        (void)state;
        for (size_t i = 0; condor_tools[i]; i++) {
                BUF_CLEANUP struct buf out = {0};
                const char *wrong = tables_fail(condor_tools[i]);

                if (wrong)
                        fail_msg("%s: -%s", condor_tools[i]->name, wrong);
                flags_help(condor_tools[i], &out);
                assert_non_null(strstr(buf_z(&out), "-version"));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_may_be_cut_short),
                cmocka_unit_test(autoformat_takes_words_up_to_the_next_flag),
                cmocka_unit_test(what_is_not_supported_is_named),
                cmocka_unit_test(numbers_are_numbers),
                cmocka_unit_test(tables_are_sound),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
