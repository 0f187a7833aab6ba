#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "core/model/submission.h"
#include "server/config/config.h"
#include "server/history/keywords.h"

#define NOVEMBER INT64_C(1793491200000) /* 2026-11-01 00:00 UTC */
#define DECEMBER INT64_C(1796083200000)

static struct config config;

static void submit(struct keywords *k, const char *owner, int64_t at_ms, uint64_t jobs,
                   const char *const *attributes)
{
        struct submission s = {.owner = str_of(owner), .at_ms = at_ms};

        for (int part = 0; part < 2; part++) {
                struct submission_part *p = submission_add_part(&s);

                for (size_t i = 0; attributes[i]; i += 2)
                        submission_add_attribute(p, str_of(attributes[i]), str_of(attributes[i + 1]), false);
        }
        keywords_add(k, &config.presets, &s, jobs);
        submission_deinit(&s);
}

struct lines {
        char v[16][128];
        size_t n;
        uint64_t requests, jobs;
};

static void on_count(void *arg, const struct keyword_count *c)
{
        struct lines *l = arg;

        if (c->keyword.n == 0) { /* the requests themselves */
                l->requests += c->requests;
                l->jobs += c->jobs;
                return;
        }
        assert_true(l->n < 16);
        snprintf(l->v[l->n++], sizeof(l->v[0]), STR_FMT " " STR_FMT " " STR_FMT " %u %u", STR_ARG(c->month),
                 STR_ARG(c->owner), STR_ARG(c->keyword), (unsigned)c->requests, (unsigned)c->jobs);
}

static int by_text(const void *a, const void *b)
{
        return strcmp(a, b);
}

static void expect(const struct keywords *k, int64_t from_ms, int64_t to_ms, const char *text)
{
        BUF_CLEANUP struct buf all = {0};
        struct lines l = {.n = 0};

        keywords_each(k, from_ms, to_ms, on_count, &l);
        qsort(l.v, l.n, sizeof(l.v[0]), by_text);
        for (size_t i = 0; i < l.n; i++)
                buf_printf(&all, "%s\n", l.v[i]);
        assert_string_equal(buf_z(&all), text);
}

static const char *const one[] = {"RequestMemory", "100", "JobPolicy", "\"night\"", "MyOwn", "1", NULL},
                         *const other[] = {"requestmemory", "7", "JobPolicy", "\"day\"", NULL};

static void test_counts(void **state)
{
        struct keywords *k = keywords_new(), *again = keywords_new();
        BUF_CLEANUP struct buf record = {0};
        struct lines all = {.n = 0};
        struct err err = {""};

        (void)state;
        submit(k, "ann@lab", NOVEMBER, 10, one);
        submit(k, "ann@lab", DECEMBER - 1, 5, other);
        submit(k, "bob@lab", DECEMBER, 1, one);
        expect(k, NOVEMBER, DECEMBER - 1,
               "2026-11 ann@lab job_policy=day 1 5\n2026-11 ann@lab job_policy=night 1 10\n"
               "2026-11 ann@lab request_memory 2 15\n");
        keywords_each(k, NOVEMBER, DECEMBER, on_count, &all);
        assert_true(all.requests == 3 && all.jobs == 16);
        keywords_pack(k, &record);
        assert_int_equal(keywords_unpack(again, buf_view(&record), &err), 0);
        expect(again, DECEMBER, 4000000000000,
               "2026-12 bob@lab job_policy=night 1 1\n2026-12 bob@lab request_memory 1 1\n");
        for (size_t n = 0; n < record.n; n++) {
                struct keywords *cut = keywords_new();

                assert_int_equal(keywords_unpack(cut, str_head(buf_view(&record), n), &err), -EBADMSG);
                keywords_free(cut);
        }
        keywords_free(k);
        keywords_free(again);
}

/* The number of counts is bounded, since users can make it grow: the oldest month makes room. */
static void test_bound(void **state)
{
        struct keywords *k = keywords_new();
        struct lines l = {.n = 0};

        (void)state;
        submit(k, "ann@lab", NOVEMBER, 1, one);
        for (unsigned i = 0; i < KEYWORDS_COUNTS_MAX; i++) {
                char owner[32];

                snprintf(owner, sizeof(owner), "u%u@lab", i / 2);
                if (i % 2 == 0)
                        submit(k, owner, DECEMBER, 1, one);
        }
        keywords_each(k, NOVEMBER, NOVEMBER, on_count, &l);
        assert_int_equal(l.n, 0);
        assert_int_equal(keywords_changes(k), 3 * (KEYWORDS_COUNTS_MAX / 2 + 1));
        keywords_free(k);
}

/* What no recorder of the settings records is not counted; without the section all is. */
static void test_recorders(void **state)
{
        static const struct {
                const char *settings, *counts;
        } all[] = {
                {"recorders: {}\n", ""},
                {"recorders: {a: {users: ['*@lab']}}\n",
                 "2026-11 ann@lab job_policy=night 1 1\n2026-11 ann@lab request_memory 1 1\n"},
                {"recorders: {a: {keywords: [Job_Policy]}}\n",
                 "2026-11 ann@lab job_policy=night 1 1\n2026-11 bob@home job_policy=day 1 1\n"},
                {"recorders:\n  a: {users: [ann@lab], keywords: [request_memory]}\n"
                 "  b: {users: [bob@home], keywords: [job_policy]}\n",
                 "2026-11 ann@lab request_memory 1 1\n2026-11 bob@home job_policy=day 1 1\n"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
                struct keywords *k = keywords_new();
                struct err err = {""};

                if (config_parse(&config, "f", str_of(all[i].settings), &err) != 0)
                        fail_msg("%s", err.text);
                submit(k, "ann@lab", NOVEMBER, 1, one);
                submit(k, "bob@home", NOVEMBER, 1, other);
                expect(k, NOVEMBER, NOVEMBER, all[i].counts);
                keywords_free(k);
                config_deinit(&config);
                config = (struct config){0};
        }
}

/* Keywords without an attribute and those of SUMS are counted, each once; what is none of them is not. */
static void test_words(void **state)
{
        static const char *const words[] = {"SubmitKeywords",
                                            "\"dataset files_per_job dataset request_memory invented\"",
                                            "SumsKeywords",
                                            "\"filesPerHour input.nFiles SandBox nFiles input. .name job\"",
                                            NULL},
                                 *const no_text[] = {"SubmitKeywords", "dataset", "SumsKeywords", "\"", NULL};
        struct keywords *k = keywords_new();
        struct err err = {""};

        (void)state;
        submit(k, "ann@lab", NOVEMBER, 2, words);
        submit(k, "ann@lab", NOVEMBER, 2, no_text);
        expect(k, NOVEMBER, NOVEMBER,
               "2026-11 ann@lab dataset 1 2\n2026-11 ann@lab files_per_job 1 2\n"
               "2026-11 ann@lab sums:SandBox 1 2\n2026-11 ann@lab sums:filesPerHour 1 2\n"
               "2026-11 ann@lab sums:input.nFiles 1 2\n");
        keywords_free(k);
        k = keywords_new();
        assert_int_equal(config_parse(&config, "f",
                                      STR("recorders: {a: {keywords: [dataset, 'sums:SandBox']}}\n"), &err),
                         0);
        submit(k, "ann@lab", NOVEMBER, 2, words);
        expect(k, NOVEMBER, NOVEMBER, "2026-11 ann@lab dataset 1 2\n2026-11 ann@lab sums:SandBox 1 2\n");
        keywords_free(k);
        config_deinit(&config);
        config = (struct config){0};
}

/* A recorder of what is never counted is refused. */
static void test_wrong_recorders(void **state)
{
        static const char *const wrong[][2] = {
                {"invented", "'invented' is no keyword of submit files"},
                {"sums:nFiles", "'sums:nFiles' is no part of SUMS's descriptions"},
                {"gpus_minimum_memory", "'gpus_minimum_memory' is counted as require_gpus"},
                {"stream_input", "'stream_input' has no effect on requests"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                BUF_CLEANUP struct buf text = {0};
                struct err err = {""};

                buf_printf(&text, "recorders: {a: {keywords: ['%s']}}\n", wrong[i][0]);
                assert_int_equal(config_parse(&config, "f", buf_view(&text), &err), -EINVAL);
                if (!strstr(err.text, wrong[i][1]))
                        fail_msg("%s", err.text);
                config_deinit(&config);
                config = (struct config){0};
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_bound),
                                           cmocka_unit_test(test_recorders), cmocka_unit_test(test_words),
                                           cmocka_unit_test(test_wrong_recorders)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
