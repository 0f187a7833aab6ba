#include "auth/credential.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <time.h>

#include "base/buf.h"
#include "base/format/base64.h"

static const char *const names[] = {
        [CREDENTIAL_PROXY] = "proxy",
        [CREDENTIAL_TOKEN] = "token",
        [CREDENTIAL_S3] = "s3",
        [CREDENTIAL_FILE] = "file",
};
#define CERTIFICATES_MAX 20 /* in a chain */

const char *credential_type_name(enum credential_type t)
{
        return names[t];
}

int credential_type_parse(struct str text, enum credential_type *ret)
{
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (str_eqz(text, names[i])) {
                        *ret = (enum credential_type)i;
                        return 0;
                }
        return -EINVAL;
}

bool credential_name_ok(struct str name)
{
        if (name.n == 0 || name.n > CREDENTIAL_NAME_MAX || name.p[0] == '.' || name.p[0] == '-')
                return false;
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];

                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-' || c == '.' || c == '@'))
                        return false;
        }
        return true;
}

static int64_t ends_ms(const X509 *cert)
{
        struct tm tm;

        if (ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) != 1)
                return 0;
        return (int64_t)timegm(&tm) * 1000;
}

/* The certificate of the chain that expires first counts. */
static int look_at_proxy(struct str data, int64_t *ret_expires_ms, struct err *err)
{
        BIO *bio = BIO_new_mem_buf(data.p, (int)data.n);
        unsigned count = 0;
        X509 *cert;

        *ret_expires_ms = 0;
        while (bio && count < CERTIFICATES_MAX && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
                int64_t end = ends_ms(cert);

                if (end && (*ret_expires_ms == 0 || end < *ret_expires_ms))
                        *ret_expires_ms = end;
                X509_free(cert);
                count++;
        }
        BIO_free(bio);
        ERR_clear_error();
        if (count == 0)
                return err_set(err, -EINVAL, "there is no certificate in it: a proxy is PEM");
        if (str_search(data, STR("PRIVATE KEY-----")) < 0)
                return err_set(err, -EINVAL, "there is no private key in it, which a proxy needs");
        return 0;
}

/* Decodes the middle part of a JSON Web Token (RFC 7515). Returns false if the token is not one. */
static bool payload(struct str token, struct buf *out)
{
        struct str rest = token, head, body;

        return str_cut(&rest, '.', &head) && str_cut(&rest, '.', &body) && rest.p && head.n && body.n &&
               base64url_decode(out, body) == 0;
}

static int look_at_token(struct str data, int64_t *ret_expires_ms, struct err *err)
{
        struct str token = str_trim(data);
        struct buf BUF_CLEANUP text = {0};
        json_t *doc;

        if (token.n == 0)
                return err_set(err, -EINVAL, "there is no token in it");
        for (size_t i = 0; i < token.n; i++)
                if ((unsigned char)token.p[i] <= ' ' || (unsigned char)token.p[i] > '~')
                        return err_set(err, -EINVAL, "a token is one word of printable characters");
        if (!payload(token, &text))
                return 0;
        doc = json_loadb(text.p ? text.p : "", text.n, 0, NULL);
        if (json_is_number(json_object_get(doc, "exp"))) {
                double s = json_number_value(json_object_get(doc, "exp"));

                *ret_expires_ms = s > 0 && s < 1e12 ? (int64_t)(s * 1000) : 0;
        }
        json_decref(doc);
        if (text.n)
                explicit_bzero(text.p, text.n);
        return 0;
}

int credential_look(enum credential_type t, struct str data, int64_t *ret_expires_ms, struct err *err)
{
        int64_t expires_ms = 0;
        int r = 0;

        if (data.n == 0)
                return err_set(err, -EINVAL, "it is empty");
        if (data.n > CREDENTIAL_BYTES_MAX)
                return err_set(err, -E2BIG, "it is larger than %u KiB", CREDENTIAL_BYTES_MAX >> 10);
        if (t == CREDENTIAL_PROXY)
                r = look_at_proxy(data, &expires_ms, err);
        else if (t == CREDENTIAL_TOKEN)
                r = look_at_token(data, &expires_ms, err);
        else if (t == CREDENTIAL_S3 && (str_search(data, STR("aws_access_key_id")) < 0 ||
                                        str_search(data, STR("aws_secret_access_key")) < 0))
                r = err_set(err, -EINVAL,
                            "an S3 key is a file with lines aws_access_key_id=... and "
                            "aws_secret_access_key=..., below [default]");
        if (r == 0)
                *ret_expires_ms = expires_ms;
        return r;
}
