/* Tokens as an issuer makes them, and as those make them who are none. */
#include "auth/jwt.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/format/base64.h"

struct issuer {
        EVP_PKEY *rsa, *other_rsa, *small_rsa, *p256, *p384;
};

static int make_issuer(void **state)
{
        struct issuer *is = mem_new(struct issuer);

        is->rsa = EVP_RSA_gen(2048);
        is->other_rsa = EVP_RSA_gen(2048);
        is->small_rsa = EVP_RSA_gen(1024);
        is->p256 = EVP_EC_gen("P-256");
        is->p384 = EVP_EC_gen("P-384");
        *state = is;
        return 0;
}

static int free_issuer(void **state)
{
        struct issuer *is = *state;

        EVP_PKEY_free(is->rsa);
        EVP_PKEY_free(is->other_rsa);
        EVP_PKEY_free(is->small_rsa);
        EVP_PKEY_free(is->p256);
        EVP_PKEY_free(is->p384);
        free(is);
        return 0;
}

static void add_number(struct buf *to, const char *member, EVP_PKEY *key, const char *param, int bytes)
{
        BIGNUM *n = NULL;
        unsigned char raw[1100];
        int size;

        assert_int_equal(EVP_PKEY_get_bn_param(key, param, &n), 1);
        size = bytes ? BN_bn2binpad(n, raw, bytes) : BN_bn2bin(n, raw);
        buf_printf(to, ",\"%s\":\"", member);
        base64url_encode(to, str_make((char *)raw, (size_t)size));
        buf_char(to, '"');
        BN_free(n);
}

/* Appends a key in the form of RFC 7517, with more members. */
static void add_jwk(struct buf *to, EVP_PKEY *key, const char *more)
{
        bool rsa = EVP_PKEY_is_a(key, "RSA");
        int bytes = (EVP_PKEY_get_bits(key) + 7) / 8;

        buf_printf(to, "%s{\"kty\":\"%s\"%s", to->n ? "," : "", rsa ? "RSA" : "EC", more);
        if (rsa) {
                add_number(to, "n", key, OSSL_PKEY_PARAM_RSA_N, 0);
                add_number(to, "e", key, OSSL_PKEY_PARAM_RSA_E, 0);
        } else {
                buf_printf(to, ",\"crv\":\"P-%d\"", EVP_PKEY_get_bits(key));
                add_number(to, "x", key, OSSL_PKEY_PARAM_EC_PUB_X, bytes);
                add_number(to, "y", key, OSSL_PKEY_PARAM_EC_PUB_Y, bytes);
        }
        buf_char(to, '}');
}

static struct jwt_keys *keys_of(struct buf *jwks)
{
        BUF_CLEANUP struct buf text = {0};
        struct jwt_keys *keys;
        struct err err;

        buf_printf(&text, "{\"keys\":[%s]}", buf_z(jwks));
        if (jwt_keys_parse(buf_view(&text), &keys, &err) != 0)
                fail_msg("%s", err.text);
        return keys;
}

/* Converts DER to the two numbers of ES256. */
static void to_raw(struct buf *signature)
{
        const unsigned char *p = (const unsigned char *)signature->p;
        ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &p, (long)signature->n);
        unsigned char raw[64];

        BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, 32);
        BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + 32, 32);
        ECDSA_SIG_free(sig);
        buf_reset(signature);
        buf_add(signature, raw, sizeof(raw));
}

static void sign(struct buf *token, EVP_PKEY *key)
{
        BUF_CLEANUP struct buf signature = {0};
        EVP_MD_CTX *md = EVP_MD_CTX_new();
        unsigned char room[1100];
        size_t n = sizeof(room);

        assert_int_equal(EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, key), 1);
        assert_int_equal(EVP_DigestSign(md, room, &n, (unsigned char *)token->p, token->n), 1);
        EVP_MD_CTX_free(md);
        buf_add(&signature, room, n);
        if (EVP_PKEY_is_a(key, "EC"))
                to_raw(&signature);
        buf_char(token, '.');
        base64url_encode(token, buf_view(&signature));
}

static void make_token(struct buf *token, const char *head, const char *claims, EVP_PKEY *key)
{
        buf_reset(token);
        base64url_encode(token, str_of(head));
        buf_char(token, '.');
        base64url_encode(token, str_of(claims));
        if (key)
                sign(token, key);
}

static int verify(const struct jwt_keys *keys, struct str token)
{
        json_t *claims = NULL;
        struct err err;
        int r = jwt_verify(keys, token, &claims, &err);

        if (r == 0)
                assert_string_equal(json_string_value(json_object_get(claims, "sub")), "ann");
        else
                assert_null(claims);
        json_decref(claims);
        return r;
}

#define CLAIMS "{\"sub\":\"ann\"}"

static void good_tokens(void **state)
{
        const struct issuer *is = *state;
        BUF_CLEANUP struct buf jwks = {0}, token = {0};
        struct jwt_keys *keys;

        add_jwk(&jwks, is->rsa, ",\"kid\":\"r\",\"use\":\"sig\",\"alg\":\"RS256\"");
        add_jwk(&jwks, is->other_rsa, ",\"kid\":\"o\"");
        add_jwk(&jwks, is->p256, ",\"kid\":\"e\"");
        keys = keys_of(&jwks);
        assert_int_equal(jwt_keys_count(keys), 3);
        make_token(&token, "{\"alg\":\"RS256\",\"kid\":\"r\",\"typ\":\"JWT\"}", CLAIMS, is->rsa);
        assert_int_equal(verify(keys, buf_view(&token)), 0);
        make_token(&token, "{\"alg\":\"RS256\",\"kid\":\"o\"}", CLAIMS, is->other_rsa);
        assert_int_equal(verify(keys, buf_view(&token)), 0);
        make_token(&token, "{\"alg\":\"ES256\",\"kid\":\"e\"}", CLAIMS, is->p256);
        assert_int_equal(verify(keys, buf_view(&token)), 0);
        make_token(&token, "{\"alg\":\"ES256\"}", CLAIMS, is->p256); /* the only one of its type */
        assert_int_equal(verify(keys, buf_view(&token)), 0);
        make_token(&token, "{\"alg\":\"RS256\"}", CLAIMS, is->rsa); /* there are two */
        assert_int_equal(verify(keys, buf_view(&token)), JWT_NO_KEY);
        make_token(&token, "{\"alg\":\"RS256\",\"kid\":\"new\"}", CLAIMS, is->rsa);
        assert_int_equal(verify(keys, buf_view(&token)), JWT_NO_KEY);
        jwt_keys_free(keys);
}

/* HS256 over the issuer's public key, which everybody has, in the forms in which it is likely to be at hand.
 */
static void hmac_with(struct buf *token, struct str secret)
{
        unsigned char mac[32];

        make_token(token, "{\"alg\":\"HS256\",\"kid\":\"r\"}", CLAIMS, NULL);
        HMAC(EVP_sha256(), secret.p, (int)secret.n, (unsigned char *)token->p, token->n, mac, NULL);
        buf_char(token, '.');
        base64url_encode(token, str_make((char *)mac, sizeof(mac)));
}

static void tokens_of_others(void **state)
{
        const struct issuer *is = *state;
        static const struct {
                const char *head;
                bool signed_by_other;
        } heads[] = {
                {"{\"alg\":\"RS256\",\"kid\":\"r\"}", true},
                {"{\"alg\":\"ES256\",\"kid\":\"r\"}", false}, /* another algorithm than the key's */
                {"{\"alg\":\"RS256\",\"kid\":\"e\"}", false},
                {"{\"alg\":\"none\",\"kid\":\"r\"}", false},
                {"{\"alg\":\"None\"}", false},
                {"{\"alg\":\"\"}", false},
                {"{\"alg\":[\"RS256\"],\"kid\":\"r\"}", false},
                {"{\"alg\":\"RS512\",\"kid\":\"r\"}", false},
                {"{\"alg\":\"PS256\",\"kid\":\"r\"}", false},
                {"{\"kid\":\"r\"}", false},
                {"{\"alg\":\"RS256\",\"alg\":\"none\",\"kid\":\"r\"}", false},
                {"{\"alg\":\"RS256\",\"kid\":\"r\",\"crit\":[\"b64\"],\"b64\":false}", false},
                {"[\"RS256\"]", false},
                {"RS256", false},
                {"", false},
        };
        BUF_CLEANUP struct buf jwks = {0}, token = {0}, text = {0};
        struct jwt_keys *keys;
        BIO *pem = BIO_new(BIO_s_mem());
        char *p;
        long n;

        add_jwk(&jwks, is->rsa, ",\"kid\":\"r\"");
        add_jwk(&jwks, is->p256, ",\"kid\":\"e\"");
        keys = keys_of(&jwks);
        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
                make_token(&token, heads[i].head, CLAIMS, heads[i].signed_by_other ? is->other_rsa : is->rsa);
                if (verify(keys, buf_view(&token)) == 0)
                        fail_msg("%s", heads[i].head);
        }
        /* a key in the head, or an address of one, is nobody's */
        add_jwk(&text, is->other_rsa, "");
        buf_reset(&jwks);
        buf_printf(&jwks, "{\"alg\":\"RS256\",\"kid\":\"r\",\"jwk\":%s,\"jku\":\"https://evil.example/\"}",
                   buf_z(&text));
        make_token(&token, buf_z(&jwks), CLAIMS, is->other_rsa);
        assert_int_equal(verify(keys, buf_view(&token)), -EACCES);
        PEM_write_bio_PUBKEY(pem, is->rsa);
        n = BIO_get_mem_data(pem, &p);
        hmac_with(&token, str_make(p, (size_t)n));
        assert_int_equal(verify(keys, buf_view(&token)), -EACCES);
        hmac_with(&token, STR(""));
        assert_int_equal(verify(keys, buf_view(&token)), -EACCES);
        BIO_free(pem);
        jwt_keys_free(keys);
}

/* Every byte of a good token matters, and nothing may stand before, between or behind its parts. */
static void changed_tokens(void **state)
{
        const struct issuer *is = *state;
        BUF_CLEANUP struct buf jwks = {0}, token = {0}, other = {0};
        struct jwt_keys *keys;

        add_jwk(&jwks, is->p256, "");
        keys = keys_of(&jwks);
        make_token(&token, "{\"alg\":\"ES256\"}", CLAIMS, is->p256);
        assert_int_equal(verify(keys, buf_view(&token)), 0);
        for (size_t i = 0; i < token.n; i++) {
                char was = token.p[i];

                token.p[i] = (char)(was == 'A' ? 'B' : 'A');
                assert_int_not_equal(verify(keys, buf_view(&token)), 0);
                token.p[i] = was;
                assert_int_not_equal(verify(keys, str_head(buf_view(&token), i)), 0);
        }
        for (unsigned i = 0; i < 5; i++) {
                static const char *const more[] = {".", "=", "A", "\n", ".e30"};

                buf_reset(&other);
                buf_printf(&other, "%s%s", buf_z(&token), more[i]);
                assert_int_not_equal(verify(keys, buf_view(&other)), 0);
        }
        make_token(&token, "{\"alg\":\"ES256\"}", CLAIMS, NULL);
        buf_char(&token, '.');
        assert_int_equal(verify(keys, buf_view(&token)), -EACCES); /* signed by nobody */
        base64url_encode(&token, str_make((char[64]){0}, 64));     /* CVE-2022-21449 */
        assert_int_equal(verify(keys, buf_view(&token)), -EACCES);
        make_token(&token, "{\"alg\":\"ES256\"}", "[1]", is->p256);
        assert_int_equal(verify(keys, buf_view(&token)), -EACCES);
        make_token(&token, "{\"alg\":\"ES256\"}", "{\"sub\":\"ann\",\"sub\":\"bob\"}", is->p256);
        assert_int_equal(verify(keys, buf_view(&token)), -EACCES);
        buf_reset(&token);
        while (token.n <= JWT_TEXT_MAX)
                buf_addz(&token, "aaaaaaaa.");
        assert_int_equal(verify(keys, buf_view(&token)), -EACCES);
        jwt_keys_free(keys);
}

static void keys_that_are_none(void **state)
{
        static const char *const none[] = {
                "{\"kty\":\"oct\",\"k\":\"c2VjcmV0\",\"kid\":\"r\"}",
                "{\"kty\":\"RSA\",\"n\":\"\",\"e\":\"AQAB\"}",
                "{\"kty\":\"RSA\",\"n\":\"!!\",\"e\":\"AQAB\"}",
                "{\"kty\":\"RSA\",\"n\":3,\"e\":\"AQAB\"}",
                "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\","
                "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}", /* not on the curve */
                "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AQ\",\"y\":\"AQ\"}",
                "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
                "7",
                "null",
                "{}",
        };
        static const char *const sets[] = {
                "", "[]", "{}", "{\"keys\":{}}", "{\"keys\":[]", "nonsense", "{\"keys\":[],\"keys\":[]}"};
        const struct issuer *is = *state;
        BUF_CLEANUP struct buf jwks = {0}, many = {0};
        struct jwt_keys *keys = NULL;
        struct err err;

        for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
                buf_printf(&jwks, "%s%s", jwks.n ? "," : "", none[i]);
        add_jwk(&jwks, is->small_rsa, "");
        add_jwk(&jwks, is->p384, "");
        add_jwk(&jwks, is->rsa, ",\"use\":\"enc\"");
        add_jwk(&jwks, is->rsa, ",\"alg\":\"RSA-OAEP\"");
        add_jwk(&jwks, is->p256, ",\"alg\":\"ES512\"");
        keys = keys_of(&jwks);
        assert_int_equal(jwt_keys_count(keys), 0);
        jwt_keys_free(keys);
        for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
                assert_int_equal(jwt_keys_parse(str_of(sets[i]), &keys, &err), -EINVAL);
        for (unsigned i = 0; i <= JWT_KEYS_MAX; i++)
                buf_printf(&many, "%s{}", i ? "," : "{\"keys\":[");
        buf_addz(&many, "]}");
        assert_int_equal(jwt_keys_parse(buf_view(&many), &keys, &err), -EINVAL);
        assert_non_null(strstr(err.text, "more than 64 keys"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(good_tokens),
                cmocka_unit_test(tokens_of_others),
                cmocka_unit_test(changed_tokens),
                cmocka_unit_test(keys_that_are_none),
        };

        return cmocka_run_group_tests(tests, make_issuer, free_issuer);
}
