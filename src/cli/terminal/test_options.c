#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/command/help_text.h"
#include "cli/terminal/cli.h"

static const struct option_row rows[] = {
        {"all", 'a', OPTION_FLAG, NULL, "x"},    {"owner", 'u', OPTION_TEXT, "NAME", "x"},
        {"limit", 'l', OPTION_NUMBER, "N", "x"}, {"timeout", 't', OPTION_DURATION, "TIME", "x"},
        {"append", 'A', OPTION_LIST, "X", "x"},  {0}};
static const struct command command = {"try", "", "", "ID...", rows, 1, 2, "", false, NULL};

static int read_words(struct options *o, struct err *err, const char *text)
{
        static char room[256];
        char *words[32];
        int n = 0;

        snprintf(room, sizeof(room), "%s", text);
        for (char *save = NULL, *w = strtok_r(room, " ", &save); w; w = strtok_r(NULL, " ", &save))
                words[n++] = w;
        return options_read(o, &command, n, words, err);
}

static void reads_all_forms(void **state)
{
        struct options o OPTIONS_CLEANUP = {0};
        struct err err;
        size_t at = 0;

        (void)state;
        assert_int_equal(read_words(&o, &err, "7 -au me --limit=-3 --timeout 2m -Ax --append y -- -8"), 0);
        assert_true(options_flag(&o, "all"));
        assert_string_equal(options_text(&o, "owner"), "me");
        assert_int_equal(options_number(&o, "limit", 0), -3);
        assert_int_equal(options_number(&o, "timeout", 0), 120);
        assert_string_equal(options_list(&o, "append", &at), "x");
        assert_string_equal(options_list(&o, "append", &at), "y");
        assert_null(options_list(&o, "append", &at));
        assert_int_equal(o.word_count, 2);
        assert_string_equal(o.words[1], "-8");
        assert_false(options_flag(&o, "help"));
}

static void the_last_one_counts(void **state)
{
        struct options o OPTIONS_CLEANUP = {0};

        (void)state;
        assert_int_equal(read_words(&o, NULL, "7 -u a --owner b"), 0);
        assert_string_equal(options_text(&o, "owner"), "b");
        assert_null(options_text(&o, "dir"));
        assert_int_equal(options_number(&o, "limit", 5), 5);
}

static void beginnings_of_names(void **state)
{
        struct options o OPTIONS_CLEANUP = {0};
        struct err err;

        (void)state;
        assert_int_equal(read_words(&o, &err, "7 --lim 4 --ow x"), 0);
        assert_int_equal(options_number(&o, "limit", 0), 4);
        options_deinit(&o);
        assert_true(read_words(&o, &err, "7 --a") < 0);
        assert_non_null(strstr(err.text, "may be"));
}

static void says_what_is_wrong(void **state)
{
        static const struct {
                const char *words, *says;
        } wrong[] = {{"7 --ownr x", "did you mean --owner?"},
                     {"7 --xyzzy", "see drover try --help"},
                     {"7 -z", "there is no option"},
                     {"7 --limit many", "whole number"},
                     {"7 --timeout soon", "--timeout: \"soon\" is not a length of time"},
                     {"7 --all=yes", "takes no value"},
                     {"7 --owner", "needs a value: --owner NAME"},
                     {"7 -u", "needs a value: -u NAME"},
                     {"", "missing ID: drover try ID..."},
                     {"7 8 9", "unexpected argument \"9\""}};

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                struct options o OPTIONS_CLEANUP = {0};
                struct err err = {""};

                assert_true(read_words(&o, &err, wrong[i].words) < 0);
                if (!strstr(err.text, wrong[i].says))
                        fail_msg("%s: %s", wrong[i].words, err.text);
        }
}

/* What the table of commands must keep to. */
static void the_table_is_sound(void **state)
{
        (void)state;
        for (const struct command *c = commands; c->name; c++) {
                assert_ptr_equal(command_find(str_of(c->name)), c);
                assert_non_null(c->run);
                assert_true(c->words_min <= c->words_max);
                assert_true(help_text_of(c)->text[0] && c->line[0] && c->usage && c->completes);
                for (const struct option_row *a = c->options; a->name; a++) {
                        assert_true((a->form == OPTION_FLAG) == (a->value == NULL));
                        assert_null(strchr(a->name, '='));
                        assert_ptr_equal(options_row(c, str_of(a->name)), a);
                        for (const struct option_row *b = options_common; b->name; b++)
                                assert_true(strcmp(a->name, b->name) != 0 &&
                                            (!a->letter || a->letter != b->letter));
                        for (const struct option_row *b = c->options; b < a; b++)
                                assert_true(!a->letter || a->letter != b->letter);
                }
        }
}

static void help_has_no_markup(void **state)
{
        const struct cli cli = {.width = 80};

        (void)state;
        for (const struct command *c = commands; c->name; c++) {
                BUF_CLEANUP struct buf help = {0};

                help_command(&help, &cli, c);
                if (strstr(buf_z(&help), "\\*") || strstr(buf_z(&help), "*accounting_group*"))
                        fail_msg("the help of %s shows Markdown", c->name);
        }
        BUF_CLEANUP struct buf run = {0};
        help_command(&run, &cli, command_find(STR("run")));
        assert_non_null(strstr(buf_z(&run), "'data/*.csv'")); /* a pattern is none */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_all_forms),     cmocka_unit_test(the_last_one_counts),
                cmocka_unit_test(beginnings_of_names), cmocka_unit_test(says_what_is_wrong),
                cmocka_unit_test(the_table_is_sound),  cmocka_unit_test(help_has_no_markup)};

        return cmocka_run_group_tests_name("cli options", tests, NULL, NULL);
}
