#include "auth/id_token.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"

#define NOW_S 1700000000LL

static const struct id_token_wanted wanted = {"https://sso.example.org", "drover", "n0nce", NOW_S * 1000};

static json_t *claims_of(const char *text)
{
        json_t *claims = json_loads(text, 0, NULL);

        if (!claims)
                fail_msg("%s", text);
        return claims;
}

static int check(const char *members)
{
        BUF_CLEANUP struct buf text = {0};
        json_t *claims;
        struct err err;
        int r;

        buf_printf(&text, "{%s}", members);
        claims = claims_of(buf_z(&text));
        r = id_token_check(claims, &wanted, &err);
        json_decref(claims);
        return r;
}

#define ISS   "\"iss\":\"https://sso.example.org\""
#define AUD   ",\"aud\":\"drover\""
#define SUB   ",\"sub\":\"4711\""
#define NONCE ",\"nonce\":\"n0nce\""
#define TIMES ",\"iat\":1700000000,\"exp\":1700000300"

static void good_tokens(void **state)
{
        (void)state;
        assert_int_equal(check(ISS AUD SUB NONCE TIMES), 0);
        assert_int_equal(check(ISS ",\"aud\":[\"drover\"]" SUB NONCE TIMES), 0);
        assert_int_equal(check(ISS ",\"aud\":[\"other\",\"drover\"],\"azp\":\"drover\"" SUB NONCE TIMES), 0);
        assert_int_equal(check(ISS AUD SUB NONCE ",\"iat\":1700000000.5,\"exp\":1.7000003e9"), 0);
        /* clocks differ by less than a minute */
        assert_int_equal(check(ISS AUD SUB NONCE ",\"iat\":1700000059,\"nbf\":1700000059,\"exp\":1700000300"),
                         0);
        assert_int_equal(check(ISS AUD SUB NONCE ",\"iat\":1699999900,\"exp\":1699999941"), 0);
}

static void bad_tokens(void **state)
{
        static const char *const bad[] = {
                "\"aud\":\"drover\"" SUB NONCE TIMES,
                "\"iss\":\"https://sso.example.org/\"" AUD SUB NONCE TIMES,
                "\"iss\":[\"https://sso.example.org\"]" AUD SUB NONCE TIMES,
                ISS SUB NONCE TIMES,
                ISS ",\"aud\":\"other\"" SUB NONCE TIMES,
                ISS ",\"aud\":\"drover2\"" SUB NONCE TIMES,
                ISS ",\"aud\":[]" SUB NONCE TIMES,
                ISS ",\"aud\":{\"drover\":1}" SUB NONCE TIMES,
                ISS ",\"aud\":[\"other\",\"drover\"]" SUB NONCE TIMES,
                ISS AUD ",\"azp\":\"other\"" SUB NONCE TIMES,
                ISS AUD ",\"azp\":[\"drover\"]" SUB NONCE TIMES,
                ISS AUD NONCE TIMES,
                ISS AUD ",\"sub\":\"\"" NONCE TIMES,
                ISS AUD ",\"sub\":4711" NONCE TIMES,
                ISS AUD SUB TIMES,
                ISS AUD SUB ",\"nonce\":\"\"" TIMES,
                ISS AUD SUB ",\"nonce\":\"n0ncE\"" TIMES,
                ISS AUD SUB ",\"nonce\":\"n0nce \"" TIMES,
                ISS AUD SUB NONCE,
                ISS AUD SUB NONCE ",\"iat\":1700000000",
                ISS AUD SUB NONCE ",\"exp\":1700000300",
                ISS AUD SUB NONCE ",\"iat\":1699999900,\"exp\":1699999940", /* expired a minute ago */
                ISS AUD SUB NONCE ",\"iat\":1700000061,\"exp\":1700000300", /* of the future */
                ISS AUD SUB NONCE ",\"iat\":1700000000,\"nbf\":1700000061,\"exp\":1700000300",
                ISS AUD SUB NONCE ",\"iat\":1700000000,\"nbf\":\"now\",\"exp\":1700000300",
                ISS AUD SUB NONCE ",\"iat\":1699999300,\"exp\":1700000300", /* of an earlier sign-in */
                ISS AUD SUB NONCE ",\"iat\":\"1700000000\",\"exp\":\"1700000300\"",
                ISS AUD SUB NONCE ",\"iat\":1700000000,\"exp\":1e300",
                ISS AUD SUB NONCE ",\"iat\":-1,\"exp\":1700000300",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                if (check(bad[i]) != -EACCES)
                        fail_msg("{%s}", bad[i]);
}

/* "" for a user who is not admitted. */
static void assert_user(const struct id_token_users *users, const char *claims, const char *who)
{
        BUF_CLEANUP struct buf out = {0};
        json_t *doc = claims_of(claims);
        struct err err;
        int r = id_token_user(doc, users, &out, &err);

        if (strcmp(buf_z(&out), who) != 0 || (r == 0) != (*who != '\0'))
                fail_msg("%s became '%s'", claims, buf_z(&out));
        json_decref(doc);
}

static void users_and_rules(void **state)
{
        char *groups[] = {(char[]){"drover"}, (char[]){"physics"}, NULL}, *staff[] = {(char[]){"yes"}, NULL};
        struct id_token_users by_name = {.claim = (char[]){"preferred_username"},
                                         .domain = (char[]){"lab"},
                                         .allow = {{(char[]){"groups"}, groups}, {(char[]){"staff"}, staff}},
                                         .allow_count = 2};
        struct id_token_users by_mail = {.claim = (char[]){"email"},
                                         .suffix = (char[]){"@lab.example"},
                                         .domain = (char[]){"lab"},
                                         .everybody = true};
        struct id_token_users nobody = {.claim = (char[]){"sub"}, .domain = (char[]){"lab"}};

        (void)state;
        assert_user(&by_name,
                    "{\"preferred_username\":\"ann\",\"groups\":[\"a\",\"physics\"],\"staff\":\"yes\"}",
                    "ann@lab");
        assert_user(&by_name, "{\"preferred_username\":\"ann\",\"groups\":\"drover\",\"staff\":\"yes\"}",
                    "ann@lab");
        assert_user(&by_name, "{\"preferred_username\":\"ann\",\"groups\":[\"drover\"]}", "");
        assert_user(&by_name, "{\"preferred_username\":\"ann\",\"groups\":[\"Drover\"],\"staff\":\"yes\"}",
                    "");
        assert_user(&by_name,
                    "{\"preferred_username\":\"ann\",\"groups\":{\"drover\":true},\"staff\":\"yes\"}", "");
        assert_user(&by_name, "{\"preferred_username\":\"ann\",\"groups\":[[\"drover\"]],\"staff\":\"yes\"}",
                    "");
        assert_user(&by_name, "{\"groups\":[\"drover\"],\"staff\":\"yes\"}", "");
        assert_user(&by_name,
                    "{\"preferred_username\":\"ann@evil.example\",\"groups\":\"drover\",\"staff\":\"yes\"}",
                    "");
        assert_user(&by_name, "{\"preferred_username\":[\"ann\"],\"groups\":[\"drover\"],\"staff\":\"yes\"}",
                    "");
        assert_user(&by_mail, "{\"email\":\"ann@lab.example\",\"email_verified\":true}", "ann@lab");
        assert_user(&by_mail, "{\"email\":\"ann@lab.example\",\"email_verified\":false}", "");
        assert_user(&by_mail, "{\"email\":\"ann@lab.example\",\"email_verified\":\"true\"}", "");
        assert_user(&by_mail, "{\"email\":\"ann@lab.example\"}", "");
        assert_user(&by_mail, "{\"email\":\"ann@evil.example\",\"email_verified\":true}", "");
        assert_user(&by_mail, "{\"email\":\"ann@evil@lab.example\",\"email_verified\":true}", "");
        assert_user(&by_mail, "{\"email\":\"@lab.example\",\"email_verified\":true}", "");
        assert_user(&by_mail, "{\"email\":\"lab.example\",\"email_verified\":true}", "");
        assert_user(&by_mail, "{\"email\":\"a b@lab.example\",\"email_verified\":true}", "");
        assert_user(&by_mail, "{\"email\":\"../root@lab.example\",\"email_verified\":true}", "");
        assert_user(&nobody, "{\"sub\":\"ann\"}", "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(good_tokens),
                cmocka_unit_test(bad_tokens),
                cmocka_unit_test(users_and_rules),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
