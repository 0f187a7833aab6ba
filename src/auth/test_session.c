#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "auth/session.h"

#define NOW 1000000

static struct token token_of(const char *who, int64_t expires_ms)
{
        return (struct token){
                .id = "0123456789abcdef", .kind = TOKEN_USER, .name = str_of(who), .expires_ms = expires_ms};
}

static void test_begin_and_end(void **state)
{
        struct sessions *ss = sessions_new();
        struct token t = token_of("ann@local", 0);
        char cookie[SESSION_SECRET_TEXT], other[SESSION_SECRET_TEXT];
        const struct session *s = sessions_open(ss, &t, NOW, cookie);

        (void)state;
        assert_string_equal(s->token_id, t.id);
        assert_int_equal(strlen(cookie), 64);
        assert_string_not_equal(cookie, s->csrf);
        assert_ptr_equal(sessions_find(ss, str_of(cookie), NOW + SESSION_VALID_MS - 1), s);
        assert_null(sessions_find(ss, str_of(cookie), NOW + SESSION_VALID_MS));
        assert_null(sessions_find(ss, STR_NONE, NOW));
        assert_null(sessions_find(ss, STR("0000"), NOW));
        assert_true(session_csrf_is(s, str_of(s->csrf)));
        assert_false(session_csrf_is(s, str_of(cookie)));
        assert_false(session_csrf_is(s, STR_NONE));
        sessions_open(ss, &t, NOW, other);
        assert_string_not_equal(cookie, other);
        sessions_close(ss, str_of(cookie));
        assert_null(sessions_find(ss, str_of(cookie), NOW));
        assert_non_null(sessions_find(ss, str_of(other), NOW));
        sessions_close(ss, STR("nothing"));
        assert_int_equal(sessions_count(ss), 1);
        sessions_free(ss);
}

static void test_ends_with_its_token(void **state)
{
        struct sessions *ss = sessions_new();
        struct token t = token_of("ann@local", NOW + 5000);
        char cookie[SESSION_SECRET_TEXT];

        (void)state;
        assert_int_equal(sessions_open(ss, &t, NOW, cookie)->expires_ms, NOW + 5000);
        assert_non_null(sessions_find(ss, str_of(cookie), NOW + 4999));
        assert_null(sessions_find(ss, str_of(cookie), NOW + 5000));
        sessions_free(ss);
}

/* A user's seventeenth ends his first, and nobody else's; what is past its end goes when one more comes. */
static void test_bounds(void **state)
{
        struct sessions *ss = sessions_new();
        struct token ann = token_of("ann@local", 0), bob = token_of("bob@local", 0);
        char first[SESSION_SECRET_TEXT], second[SESSION_SECRET_TEXT], his[SESSION_SECRET_TEXT],
                cookie[SESSION_SECRET_TEXT];

        (void)state;
        sessions_open(ss, &bob, NOW, his);
        sessions_open(ss, &ann, NOW, first);
        sessions_open(ss, &ann, NOW, second);
        for (unsigned i = 2; i <= SESSIONS_OF_ONE; i++)
                sessions_open(ss, &ann, NOW, cookie);
        assert_int_equal(sessions_count(ss), SESSIONS_OF_ONE + 1);
        assert_null(sessions_find(ss, str_of(first), NOW));
        assert_non_null(sessions_find(ss, str_of(second), NOW));
        assert_non_null(sessions_find(ss, str_of(his), NOW));
        sessions_open(ss, &bob, NOW + SESSION_VALID_MS, cookie);
        assert_int_equal(sessions_count(ss), 1);
        for (unsigned i = 0; i < SESSIONS_MAX + 10; i++) {
                char name[40];
                struct token t;

                snprintf(name, sizeof(name), "u%u@local", i);
                t = token_of(name, 0);
                sessions_open(ss, &t, NOW + SESSION_VALID_MS, cookie);
        }
        assert_int_equal(sessions_count(ss), SESSIONS_MAX);
        assert_non_null(sessions_find(ss, str_of(cookie), NOW + SESSION_VALID_MS));
        sessions_free(ss);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_begin_and_end),
                                           cmocka_unit_test(test_ends_with_its_token),
                                           cmocka_unit_test(test_bounds)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
