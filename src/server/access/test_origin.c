#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "server/access/origin.h"

#define A "2058e9bf-74d5-46d3-b5e5-ba29ae19171a"
#define B "2058e9bf-74d5-46d3-b5e5-ba29ae19171b"

static const char *attribute(const struct submission *s, const char *name)
{
        static char text[1024];

        for (size_t i = 0; i < s->parts[0].attribute_count; i++)
                if (str_eqz(s->parts[0].attributes[i].name, name)) {
                        struct str v = s->parts[0].attributes[i].text;

                        assert_true(v.n < sizeof(text));
                        memcpy(text, v.p, v.n);
                        text[v.n] = 0;
                        return text;
                }
        return NULL;
}

/* name, text pairs up to NULL */
static void job(struct submission *s, const char *const *pairs)
{
        struct submission_part *p = submission_add_part(s);

        for (; *pairs; pairs += 2)
                submission_add_attribute(p, str_of(pairs[0]), str_of(pairs[1]), false);
}
#define JOB(...) job(&s, (const char *const[]){__VA_ARGS__, NULL})

static void test_loops_and_lengths(void **state)
{
        struct submission s = {.origin = {.servers = STR(A " " B), .job = STR("7.1"), .hops_left = 1}};
        struct arena arena = {0};
        struct err err = {""};

        (void)state;
        JOB("Cmd", "\"x\"");
        assert_int_equal(origin_apply(&s, "2058E9BF-74d5-46d3-b5e5-ba29ae19171b", &arena, &err), ORIGIN_LOOP);
        assert_non_null(strstr(err.text, "job 7.1 has passed this server"));
        assert_int_equal(origin_apply(&s, "2058e9bf-74d5-46d3-b5e5-ba29ae19171c", &arena, &err), 0);
        assert_string_equal(attribute(&s, "Requirements"),
                            "(TARGET.DroverServer =?= undefined || !member(TARGET.DroverServer, {\"" A
                            "\", \"" B "\"}))");
        submission_deinit(&s);
        arena_deinit(&arena);
}

static void test_what_follows_from_an_origin(void **state)
{
        struct submission s = {.origin = {.servers = STR(A),
                                          .owner = STR("ann@far"),
                                          .label = STR("patients"),
                                          .path = STR("n1/fast, n2")}};
        struct arena arena = {0};

        (void)state;
        JOB("Requirements", "a || b", "DataLabels", "\"x\"");
        assert_int_equal(origin_apply(&s, B, &arena, NULL), 0);
        assert_non_null(strstr(attribute(&s, "Requirements"), "((a || b) && "));
        assert_non_null(strstr(attribute(&s, "Requirements"),
                               "(TARGET.AgentName == \"n1\" && TARGET.QueueName == \"fast\")"));
        assert_string_equal(attribute(&s, "DataLabels"), "strcat(\"x\", \",\", \"patients\")");
        assert_string_equal(attribute(&s, "DroverOriginOwner"), "\"ann@far\"");
        assert_string_equal(attribute(&s, "DroverPath"), "\"n1/fast, n2\"");
        submission_deinit(&s);
        arena_deinit(&arena);
}

static void test_paths_of_users(void **state)
{
        static const struct {
                const char *path, *requirements; /* NULL: refused */
        } cases[] = {
                {"\"n1\"", "(true) && (TARGET.AgentName == \"n1\")"},
                {"\" n1/q1 , n2\"", "(true) && (TARGET.AgentName == \"n1\" && TARGET.QueueName == \"q1\")"},
                {"\"*/q1\"", "(true) && (TARGET.QueueName == \"q1\")"},
                {"\"*, n2\"", "true"},
                {"\"\"", "true"},
                {"\"n1/\"", NULL},
                {"\"a\\\"b\"", NULL},
                {"7", NULL},
                {"strcat(\"a\", \"b\")", NULL},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct submission s = {0};
                struct arena arena = {0};
                struct err err = {""};

                JOB("Requirements", "true", "DroverPath", cases[i].path);
                if (cases[i].requirements) {
                        assert_int_equal(origin_apply(&s, B, &arena, &err), 0);
                        assert_string_equal(attribute(&s, "Requirements"), cases[i].requirements);
                } else {
                        assert_int_equal(origin_apply(&s, B, &arena, &err), -EINVAL);
                        assert_non_null(strstr(err.text, "DroverPath"));
                }
                submission_deinit(&s);
                arena_deinit(&arena);
        }
}

static void test_one_that_may_go_no_further_stays(void **state)
{
        static const struct {
                const char *servers, *hops, *requirements;
        } cases[] = {
                {"", "0", "(true) && (TARGET.DroverServer =?= undefined || MY.DroverMaxHops > 0)"},
                {"", NULL, "true"},
                {A, NULL,
                 "((true) && (TARGET.DroverServer =?= undefined || !member(TARGET.DroverServer, {\"" A
                 "\"}))) && "
                 "(TARGET.DroverServer =?= undefined)"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct submission s = {.origin = {.servers = str_of(cases[i].servers)}};
                struct arena arena = {0};

                JOB("Requirements", "true", cases[i].hops ? "DroverMaxHops" : NULL, cases[i].hops);
                assert_int_equal(origin_apply(&s, B, &arena, NULL), 0);
                assert_string_equal(attribute(&s, "Requirements"), cases[i].requirements);
                submission_deinit(&s);
                arena_deinit(&arena);
        }
}

static void test_documents(void **state)
{
        static const struct {
                const char *text;
                bool good;
        } cases[] = {
                {"{}", true},
                {"{\"lease_ms\":60000,\"hold_results\":true}", true},
                {"{\"hold_results\":true}", false},
                {"{\"lease_ms\":1}", false},
                {"{\"lease_ms\":\"1 h\"}", false},
                {"{\"lease_ms\":-60000}", false},
                {"{\"origin\":{\"servers\":\"" A "\",\"hops_left\":0}}", true},
                {"{\"origin\":{\"servers\":\"" A " " B "\",\"owner\":\"o\",\"job\":\"7.1\",\"label\":\"\","
                 "\"path\":\"a/b\",\"hops_left\":64}}",
                 true},
                {"{\"origin\":{\"servers\":\"\",\"hops_left\":1}}", false},
                {"{\"origin\":{\"servers\":\"me\",\"hops_left\":1}}", false},
                {"{\"origin\":{\"servers\":\"" A "\"}}", false},
                {"{\"origin\":{\"servers\":\"" A "\",\"hops_left\":65}}", false},
                {"{\"origin\":{\"servers\":\"" A "\",\"hops_left\":1,\"owner\":\"a\\nb\"}}", false},
                {"{\"origin\":[]}", false},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct submission s = {0};
                struct err err = {""};
                json_t *doc = json_loads(cases[i].text, 0, NULL);

                assert_non_null(doc);
                assert_int_equal(origin_read(doc, &s, &err), cases[i].good ? 0 : -EINVAL);
                assert_int_equal(*err.text == 0, cases[i].good);
                json_decref(doc);
        }
}

static void test_clauses_stay_whole(void **state)
{
        static const char *const bad[][2] = {
                {"Requirements", "true) || (true"},
                {"Requirements", "true /*"},
                {"DataLabels", "\"x\") + strcat(\"y\""},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct submission s = {.origin = {.servers = STR(A),
                                                  .job = STR("7.1"),
                                                  .label = STR("secret"),
                                                  .hops_left = 1}};
                struct arena arena = {0};
                struct err err = {""};

                JOB("Cmd", "\"x\"", bad[i][0], bad[i][1]);
                assert_int_equal(origin_apply(&s, B, &arena, &err), -EINVAL);
                assert_non_null(strstr(err.text, bad[i][0]));
                submission_deinit(&s);
                arena_deinit(&arena);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_loops_and_lengths),
                cmocka_unit_test(test_what_follows_from_an_origin),
                cmocka_unit_test(test_paths_of_users),
                cmocka_unit_test(test_one_that_may_go_no_further_stays),
                cmocka_unit_test(test_documents),
                cmocka_unit_test(test_clauses_stay_whole),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
