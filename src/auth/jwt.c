/* The signatures are OpenSSL's to check. What is done here is the form: base64url, members of JSON, and a
 * signature of ECDSA as two numbers of 32 bytes, where OpenSSL takes DER. */
#include "auth/jwt.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "auth/openssl.h"
#include "base/format/base64.h"
#include "base/mem.h"

#define KID_MAX       256u
#define RSA_BITS_MIN  2048
#define RSA_BITS_MAX  8192 /* a larger key costs a verification more than it is worth */
#define P256_BYTES    32u
#define NUMBER_MAX    1024u /* bytes of a number in a key */
#define SIGNATURE_MAX 1024u

enum algorithm { RS256, ES256 };

struct key {
        char *kid; /* NULL: it has no name */
        enum algorithm algorithm;
        EVP_PKEY *key;
};
struct jwt_keys {
        struct key items[JWT_KEYS_MAX];
        size_t count;
};

/* ---- keys */

static struct str jwt_text_of(const json_t *object, const char *member)
{
        const json_t *v = json_object_get(object, member);

        return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR_NONE;
}

/* Makes a public key of parameters. NULL: OpenSSL knows no such key; a point that is not on the curve is
 * none. Takes the builder. */
static EVP_PKEY *key_make(const char *type, OSSL_PARAM_BLD *build, bool good)
{
        OSSL_PARAM *params = good ? OSSL_PARAM_BLD_to_param(build) : NULL;
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
        EVP_PKEY *key = NULL;

        if (params && ctx && EVP_PKEY_fromdata_init(ctx) == 1)
                EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params);
        EVP_PKEY_CTX_free(ctx);
        OSSL_PARAM_free(params);
        OSSL_PARAM_BLD_free(build);
        return key;
}

static bool take_number(const json_t *jwk, const char *member, struct buf *ret)
{
        struct str text = jwt_text_of(jwk, member);

        return text.n > 0 && text.n <= 2 * NUMBER_MAX && base64url_decode(ret, text) == 0 && ret->n > 0 &&
               ret->n <= NUMBER_MAX;
}

static EVP_PKEY *rsa_key(const json_t *jwk)
{
        BUF_CLEANUP struct buf n = {0}, e = {0};
        BIGNUM *modulus, *exponent;
        OSSL_PARAM_BLD *build;
        EVP_PKEY *key;
        bool good;

        if (!take_number(jwk, "n", &n) || !take_number(jwk, "e", &e) || e.n > 4)
                return NULL;
        build = OSSL_PARAM_BLD_new();
        modulus = BN_bin2bn((const unsigned char *)n.p, (int)n.n, NULL);
        exponent = BN_bin2bn((const unsigned char *)e.p, (int)e.n, NULL);
        good = build && modulus && exponent && BN_num_bits(modulus) >= RSA_BITS_MIN &&
               BN_num_bits(modulus) <= RSA_BITS_MAX && BN_is_odd(modulus) && BN_is_odd(exponent) &&
               !BN_is_one(exponent) && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
               OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent) == 1;
        key = key_make("RSA", build, good);
        BN_free(modulus);
        BN_free(exponent);
        return key;
}

static EVP_PKEY *p256_key(const json_t *jwk)
{
        BUF_CLEANUP struct buf x = {0}, y = {0}, point = {0};
        OSSL_PARAM_BLD *build;

        if (!str_eqz(jwt_text_of(jwk, "crv"), "P-256") || !take_number(jwk, "x", &x) ||
            !take_number(jwk, "y", &y) || x.n != P256_BYTES || y.n != P256_BYTES)
                return NULL;
        buf_char(&point, 4); /* not compressed */
        buf_str(&point, buf_view(&x));
        buf_str(&point, buf_view(&y));
        build = OSSL_PARAM_BLD_new();
        return key_make("EC", build,
                        build &&
                                OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME,
                                                                "prime256v1", 0) == 1 &&
                                OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point.p,
                                                                 point.n) == 1);
}

/* Adds the key if it verifies tokens. */
static void take_key(struct jwt_keys *keys, const json_t *jwk)
{
        struct str type = jwt_text_of(jwk, "kty"), use = jwt_text_of(jwk, "use"),
                   alg = jwt_text_of(jwk, "alg"), kid = jwt_text_of(jwk, "kid");
        struct key *k = &keys->items[keys->count];

        if ((use.n && !str_eqz(use, "sig")) || kid.n > KID_MAX)
                return;
        if (str_eqz(type, "RSA") && (alg.n == 0 || str_eqz(alg, "RS256")))
                *k = (struct key){.algorithm = RS256, .key = rsa_key(jwk)};
        else if (str_eqz(type, "EC") && (alg.n == 0 || str_eqz(alg, "ES256")))
                *k = (struct key){.algorithm = ES256, .key = p256_key(jwk)};
        else
                return;
        if (!k->key)
                return;
        k->kid = kid.n ? str_dupz(kid) : NULL;
        keys->count++;
}

int jwt_keys_parse(struct str json, struct jwt_keys **ret, struct err *err)
{
        json_t *doc = json_loadb(json.p ? json.p : "", json.n, JSON_REJECT_DUPLICATES, NULL);
        const json_t *list = json_object_get(doc, "keys");
        struct jwt_keys *keys;

        if (!json_is_array(list) || json_array_size(list) > JWT_KEYS_MAX) {
                int r = err_set(err, -EINVAL,
                                json_is_array(list) ? "there are more than %u keys in it"
                                                    : "it is not a set of keys (RFC 7517)",
                                JWT_KEYS_MAX);

                json_decref(doc);
                return r;
        }
        keys = mem_new(struct jwt_keys);
        for (size_t i = 0; i < json_array_size(list); i++)
                take_key(keys, json_array_get(list, i));
        json_decref(doc);
        openssl_fail(NULL, 0, ""); /* nobody asks why keys were left out */
        *ret = keys;
        return 0;
}

void jwt_keys_free(struct jwt_keys *keys)
{
        if (!keys)
                return;
        for (size_t i = 0; i < keys->count; i++) {
                free(keys->items[i].kid);
                EVP_PKEY_free(keys->items[i].key);
        }
        free(keys);
}

size_t jwt_keys_count(const struct jwt_keys *keys)
{
        return keys->count;
}

/* Finds the key of a token. Without a name there must be one key only (OpenID Connect Core 1.0, 10.1). */
static const struct key *find_key(const struct jwt_keys *keys, enum algorithm a, struct str kid)
{
        const struct key *found = NULL;

        for (size_t i = 0; i < keys->count; i++) {
                const struct key *k = &keys->items[i];

                if (k->algorithm != a || (kid.n && (!k->kid || !str_eqz(kid, k->kid))))
                        continue;
                if (found)
                        return NULL;
                found = k;
        }
        return found;
}

/* ---- tokens */

/* Decodes a part of a token that is a JSON object. NULL: it is none. */
static json_t *object_of(struct str part)
{
        BUF_CLEANUP struct buf text = {0};
        json_t *doc = NULL;

        if (base64url_decode(&text, part) == 0)
                doc = json_loadb(text.p ? text.p : "", text.n, JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(doc))
                return doc;
        json_decref(doc);
        return NULL;
}

/* Converts a signature of ES256 to DER. False: it has not the length of one. */
static bool to_der(struct buf *signature)
{
        const unsigned char *raw = (const unsigned char *)signature->p;
        ECDSA_SIG *sig = signature->n == 2 * P256_BYTES ? ECDSA_SIG_new() : NULL;
        unsigned char der[2 * P256_BYTES + 16], *to = der;
        int n = 0;

        if (sig && ECDSA_SIG_set0(sig, BN_bin2bn(raw, P256_BYTES, NULL),
                                  BN_bin2bn(raw + P256_BYTES, P256_BYTES, NULL)) == 1)
                n = i2d_ECDSA_SIG(sig, &to);
        ECDSA_SIG_free(sig);
        buf_reset(signature);
        buf_add(signature, der, n > 0 ? (size_t)n : 0);
        return n > 0;
}

static bool signature_good(const struct key *k, struct str said, struct str text)
{
        BUF_CLEANUP struct buf signature = {0};
        EVP_MD_CTX *md;
        bool good;

        if (text.n > 2 * SIGNATURE_MAX || base64url_decode(&signature, text) != 0 ||
            (k->algorithm == ES256 && !to_der(&signature)))
                return false;
        md = EVP_MD_CTX_new();
        good = md && EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, k->key) == 1 &&
               EVP_DigestVerify(md, (const unsigned char *)signature.p, signature.n,
                                (const unsigned char *)said.p, said.n) == 1;
        EVP_MD_CTX_free(md);
        openssl_fail(NULL, 0, "");
        return good;
}

/* Reads the head: which algorithm and which key it names. */
static int read_head(const json_t *head, enum algorithm *ret, struct str *ret_kid, struct err *err)
{
        struct str alg = jwt_text_of(head, "alg");

        if (!head)
                return err_set(err, -EACCES, "the token has no head of JSON");
        if (json_object_get(head, "crit")) /* RFC 7515, 4.1.11 */
                return err_set(err, -EACCES, "the token needs extensions that are not known here");
        if (!str_eqz(alg, "RS256") && !str_eqz(alg, "ES256"))
                return err_set(err, -EACCES,
                               "the token is signed by '" STR_FMT "': RS256 and ES256 are accepted",
                               STR_ARG(str_head(alg, 20)));
        *ret = str_eqz(alg, "RS256") ? RS256 : ES256;
        *ret_kid = jwt_text_of(head, "kid");
        return ret_kid->n > KID_MAX ? err_set(err, -EACCES, "the name of the token's key is too long") : 0;
}

int jwt_verify(const struct jwt_keys *keys, struct str token, json_t **ret_claims, struct err *err)
{
        struct str rest = token, head_text, claims_text, said;
        enum algorithm algorithm = RS256;
        const struct key *k = NULL;
        struct str kid = STR_NONE;
        json_t *head, *claims;
        int r;

        if (token.n > JWT_TEXT_MAX || !str_cut(&rest, '.', &head_text) ||
            !str_cut(&rest, '.', &claims_text) || !rest.p || str_find(rest, '.') >= 0)
                return err_set(err, -EACCES, "the token has not the three parts of a signed one");
        said = str_head(token, head_text.n + 1 + claims_text.n);
        head = object_of(head_text);
        r = read_head(head, &algorithm, &kid, err);
        if (r == 0 && !(k = find_key(keys, algorithm, kid)))
                r = err_set(err, JWT_NO_KEY, "the issuer has published no key '" STR_FMT "' for this token",
                            STR_ARG(str_head(kid, 80)));
        json_decref(head); /* kid was borrowed from it */
        if (r != 0)
                return r;
        if (!signature_good(k, said, rest))
                return err_set(err, -EACCES, "the token's signature is wrong");
        claims = object_of(claims_text);
        if (!claims)
                return err_set(err, -EACCES, "the token has no claims of JSON");
        *ret_claims = claims;
        return 0;
}
