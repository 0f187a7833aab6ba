#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/job/args.h"
#include "cli/slurm/script.h"
#include "cli/slurm/slurm.h"

static void lines_are_parted_as_slurm_does(void **state)
{
        static const struct {
                const char *line, *words; /* with bars between */
        } good[] = {{" -n 2\t--mem 20", "-n|2|--mem|20"},
                    {" --job-name=a#b --hold", "--job-name=a"},
                    {" --comment=\"x # y\" # note", "--comment=x # y"},
                    {" -J 'two words'", "-J|two words"},
                    {" -J two\\ words", "-J|two words"},
                    {" -J \"\"", "-J|"},
                    {"", ""},
                    {" # all of it", ""}};

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                ARGS_CLEANUP struct args words = {0};
                BUF_CLEANUP struct buf out = {0};

                assert_int_equal(script_words(str_of(good[i].line), &words), 0);
                for (size_t k = 0; k < words.n; k++)
                        buf_printf(&out, "%s%s", k ? "|" : "", words.v[k]);
                assert_string_equal(buf_z(&out), good[i].words);
        }
        {
                ARGS_CLEANUP struct args words = {0};

                assert_int_not_equal(script_words(STR(" -J 'open"), &words), 0);
        }
}

static void options_end_with_the_first_command(void **state)
{
        WORDS_CLEANUP struct words w;
        struct err err = {""};

        (void)state;
        words_init(&w, &slurm_sbatch);
        assert_int_equal(
                script_options(
                        STR("#!/bin/bash\n# note\n\n#SBATCH -n 2 --mem=20\n  #SBATCH -c 3\n#SBATCHX -c 3\n"
                            "#SBATCH --time=1\n\n#SBATCH -t 2\necho\n#SBATCH -n 4\n"),
                        &w, &err),
                0);
        assert_string_equal(words_text(&w, "ntasks"), "2");
        assert_string_equal(words_text(&w, "time"), "2");
        assert_false(words_has(&w, "cpus-per-task"));
}

static void a_wrong_line_is_named(void **state)
{
        static const char *const bad[] = {"#!/bin/sh\n#SBATCH --bogus\n", "#!/bin/sh\n#SBATCH word\n",
                                          "#!/bin/sh\n#SBATCH --uid=7\n", "#!/bin/sh\n#SBATCH hetjob\n",
                                          "#!/bin/sh\n#SBATCH -J 'x\n"};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                WORDS_CLEANUP struct words w;
                struct err err = {""};

                words_init(&w, &slurm_sbatch);
                assert_int_not_equal(script_options(str_of(bad[i]), &w, &err), 0);
                assert_true(str_starts(str_of(err.text), STR("line 2: ")));
        }
}

static void what_is_no_script_is_refused(void **state)
{
        (void)state;
        assert_int_equal(script_check(STR("#!/bin/sh\n"), NULL), 0);
        assert_int_not_equal(script_check(STR(""), NULL), 0);
        assert_int_not_equal(script_check(STR("echo\n"), NULL), 0);
        assert_int_not_equal(script_check(STR("#!/bin/sh\n\0"), NULL), 0);
        assert_int_not_equal(script_check(STR("#!/bin/sh\r\n"), NULL), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_are_parted_as_slurm_does),
                cmocka_unit_test(options_end_with_the_first_command),
                cmocka_unit_test(a_wrong_line_is_named),
                cmocka_unit_test(what_is_no_script_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
