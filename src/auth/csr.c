#include "auth/csr.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <time.h>

#include "auth/openssl.h"

bool csr_name_valid(struct str name)
{
        if (name.n == 0 || name.n > CSR_NAME_MAX)
                return false;
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];
                bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

                if (!plain && (i == 0 || (c != '.' && c != '_' && c != '-')))
                        return false;
        }
        return true;
}

static int make_csr(struct str name, EVP_PKEY *key, struct buf *ret_csr_pem, struct err *err)
{
        CSR_CLEANUP X509_REQ *csr = X509_REQ_new();
        X509_NAME *subject = csr ? X509_REQ_get_subject_name(csr) : NULL;

        if (!subject || X509_REQ_set_version(csr, X509_REQ_VERSION_1) != 1 ||
            X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name.p,
                                       (int)name.n, -1, 0) != 1 ||
            X509_REQ_set_pubkey(csr, key) != 1 || X509_REQ_sign(csr, key, EVP_sha256()) <= 0 ||
            !openssl_csr_write(csr, ret_csr_pem))
                return openssl_fail(err, -EIO, "cannot make a certificate request");
        return 0;
}

static int check_name(struct str name, struct err *err)
{
        if (csr_name_valid(name))
                return 0;
        return err_set(err, -EINVAL,
                       "\"" STR_FMT "\" cannot be an agent's name: use up to %d letters, digits and . _ -",
                       STR_ARG(name), CSR_NAME_MAX);
}

int csr_make(struct str name, struct buf *ret_key_pem, struct buf *ret_csr_pem, struct err *err)
{
        KEY_CLEANUP EVP_PKEY *key = NULL;
        int r = check_name(name, err);

        if (r)
                return r;
        key = openssl_key_new();
        if (!key)
                return openssl_fail(err, -EIO, "cannot make a key");
        r = make_csr(name, key, ret_csr_pem, err);
        if (r == 0 && !openssl_key_write(key, ret_key_pem))
                r = openssl_fail(err, -EIO, "cannot write a key");
        return r;
}

int csr_renew(struct str name, struct str key_pem, struct buf *ret_csr_pem, struct err *err)
{
        KEY_CLEANUP EVP_PKEY *key = NULL;
        int r = check_name(name, err);

        if (r)
                return r;
        key = openssl_key_read(key_pem);
        if (!key)
                return openssl_fail(err, -EINVAL, "this is not a key");
        return make_csr(name, key, ret_csr_pem, err);
}

static bool time_ms(const ASN1_TIME *t, int64_t *ret)
{
        struct tm tm;

        if (!t || ASN1_TIME_to_tm(t, &tm) != 1)
                return false;
        *ret = (int64_t)timegm(&tm) * 1000;
        return true;
}

int cert_facts(struct str cert_pem, struct cert_facts *ret, struct err *err)
{
        CERT_CLEANUP X509 *cert = openssl_cert_read(cert_pem);
        struct cert_facts facts = {0};

        if (!cert)
                return openssl_fail(err, -EINVAL, "this is not a certificate");
        if (X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, facts.name,
                                      sizeof(facts.name)) < 0 ||
            !openssl_serial(cert, facts.serial) || !openssl_fingerprint(cert, facts.fingerprint) ||
            !time_ms(X509_get0_notBefore(cert), &facts.from_ms) ||
            !time_ms(X509_get0_notAfter(cert), &facts.until_ms))
                return openssl_fail(err, -EINVAL, "this certificate cannot be read");
        *ret = facts;
        return 0;
}

bool cert_fits_key(struct str cert_pem, struct str key_pem)
{
        CERT_CLEANUP X509 *cert = openssl_cert_read(cert_pem);
        KEY_CLEANUP EVP_PKEY *key = openssl_key_read(key_pem);
        bool fits = cert && key && X509_check_private_key(cert, key) == 1;

        ERR_clear_error();
        return fits;
}
