/* openssl: helpers for OpenSSL that the files of auth/ share. Private to auth/. */
#pragma once
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "base/buf.h"
#include "base/err.h"

/* Empties OpenSSL's error queue, and puts the first error into err: "what: reason". Returns code. */
int openssl_fail(struct err *err, int code, const char *what);

EVP_PKEY *openssl_key_new(void); /* EC P-256; NULL on failure */
EVP_PKEY *openssl_key_read(struct str pem);
X509 *openssl_cert_read(struct str pem);
X509_REQ *openssl_csr_read(struct str pem);
bool openssl_key_write(EVP_PKEY *key, struct buf *out); /* appends the key in PEM */
bool openssl_cert_write(X509 *cert, struct buf *out);
bool openssl_csr_write(X509_REQ *csr, struct buf *out);
bool openssl_fingerprint(X509 *cert, char ret[65]);
bool openssl_serial(X509 *cert, char ret[41]);

static inline void openssl_key_cleanup(EVP_PKEY **p)
{
        EVP_PKEY_free(*p);
}
static inline void openssl_cert_cleanup(X509 **p)
{
        X509_free(*p);
}
static inline void openssl_csr_cleanup(X509_REQ **p)
{
        X509_REQ_free(*p);
}
#define KEY_CLEANUP  __attribute__((cleanup(openssl_key_cleanup)))
#define CERT_CLEANUP __attribute__((cleanup(openssl_cert_cleanup)))
#define CSR_CLEANUP  __attribute__((cleanup(openssl_csr_cleanup)))
