#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "cli/slurm/ids.h"
#include "cli/slurm/slurm.h"

#define READ(w, ...) read_words(w, &err, (const char *const[]){__VA_ARGS__, NULL})

static int read_words(struct words *w, struct err *err, const char *const *words)
{
        size_t n = 0;

        while (words[n])
                n++;
        return words_read(w, WORDS_CALL, n, words, err);
}

static void the_last_one_counts(void **state)
{
        WORDS_CLEANUP struct words w;
        struct err err = {""};

        (void)state;
        words_init(&w, &slurm_sbatch);
        assert_int_equal(READ(&w, "-n2", "--ntasks", "3", "--cpus-per-t", "2", "--mem=4", "--mem-per-cpu",
                              "5", "job.sh", "-n", "7"),
                         0);
        assert_string_equal(words_text(&w, "ntasks"), "3");
        assert_true(words_place(&w, "mem-per-cpu") > words_place(&w, "mem"));
        assert_int_equal(words_place(&w, "time"), 0);
        assert_int_equal(w.word_count, 3);
        assert_string_equal(w.words[1], "-n");
}

static void a_value_may_be_missing_where_slurm_says_that_it_may(void **state)
{
        WORDS_CLEANUP struct words w;
        struct err err = {""};

        (void)state;
        words_init(&w, &slurm_sbatch);
        assert_int_equal(READ(&w, "--nice", "--exclusive=user"), 0);
        assert_string_equal(words_text(&w, "nice"), "");
        assert_string_equal(words_text(&w, "exclusive"), "user");
        assert_null(words_text(&w, "comment"));
}

static void others_are_refused_by_name(void **state)
{
        static const char *const bad[] = {"--bogus", "--ntasks", "-Z", "--hold=1", "--uid=1", "--mem-"};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                WORDS_CLEANUP struct words w;
                struct err err = {""};

                words_init(&w, &slurm_sbatch);
                assert_int_not_equal(READ(&w, bad[i]), 0);
                if (!strstr(err.text, bad[i]) && !strstr(err.text, "--hold") && !strstr(err.text, "--uid") &&
                    !strstr(err.text, "'Z'"))
                        fail_msg("%s: %s", bad[i], err.text);
        }
}

static void what_is_left_out_is_named_once(void **state)
{
        WORDS_CLEANUP struct words w;
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        (void)state;
        words_init(&w, &slurm_sbatch);
        assert_int_equal(READ(&w, "--exclusive", "--hint=x", "--exclusive", "-n", "1"), 0);
        words_warnings(&w, &out);
        assert_non_null(strstr(buf_z(&out), "--exclusive"));
        assert_null(strstr(strstr(buf_z(&out), "--exclusive") + 1, "--exclusive"));
        assert_non_null(strstr(buf_z(&out), "--hint"));
        assert_null(strstr(buf_z(&out), "--ntasks"));
}

static void variables_are_options(void **state)
{
        WORDS_CLEANUP struct words w;
        struct err err = {""};

        (void)state;
        setenv("SBATCH_TIMELIMIT", "5", 1);
        setenv("SBATCH_REQUEUE", "", 1);
        words_init(&w, &slurm_sbatch);
        assert_int_equal(words_environment(&w, &err), 0);
        assert_string_equal(words_text(&w, "time"), "5");
        assert_true(words_has(&w, "requeue"));
        unsetenv("SBATCH_TIMELIMIT");
        unsetenv("SBATCH_REQUEUE");
}

static void ids_name_jobs_and_tasks(void **state)
{
        static const struct {
                const char *text, *id, *constraint;
        } good[] = {{"7", "7", ""},
                    {"7_4", "7", "(SlurmTask == 4)"},
                    {"7_[1-3,9]", "7", "((SlurmTask >= 1 && SlurmTask <= 3) || SlurmTask == 9)"},
                    {"7_*", "7", ""},
                    {"300000007", "7.3", ""},
                    {"7.batch", "7", ""}};
        static const char *const bad[] = {"",   "0",           "x",    "7_",       "7_x",
                                          "-7", "100000007_1", "7_[]", "100000000"};

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                BUF_CLEANUP struct buf id = {0}, constraint = {0};
                struct job_id one;

                assert_int_equal(job_id_parse(str_of(good[i].text), &one, NULL), 0);
                job_id_select(&one, &id, &constraint);
                assert_string_equal(buf_z(&id), good[i].id);
                assert_string_equal(buf_z(&constraint), good[i].constraint);
                job_id_deinit(&one);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct job_id one;

                if (job_id_parse(str_of(bad[i]), &one, NULL) == 0)
                        fail_msg("%s was taken", bad[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_last_one_counts),
                cmocka_unit_test(a_value_may_be_missing_where_slurm_says_that_it_may),
                cmocka_unit_test(others_are_refused_by_name),
                cmocka_unit_test(what_is_left_out_is_named_once),
                cmocka_unit_test(variables_are_options),
                cmocka_unit_test(ids_name_jobs_and_tasks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
