/* csr: makes a key and a request for its certificate. This is the agent's part of joining; it does not use
 * the store, so the agent links only this. All texts are PEM (RFC 7468); the key is EC P-256 (PKCS#8), the
 * request PKCS#10 (RFC 2986). */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define CSR_NAME_MAX 64 /* bytes of a common name, RFC 5280 ub-common-name */

/* Accepts letters, digits and . _ -, not beginning with one of these marks, because the name is also used
 * as a file name and a host name. */
bool csr_name_valid(struct str name);

/* Makes a key and a request for `name`, and appends both. Returns 0; -EINVAL for an invalid name; -EIO
 * when OpenSSL fails. */
int csr_make(struct str name, struct buf *ret_key_pem, struct buf *ret_csr_pem, struct err *err);
/* Makes a request for an existing key, to renew its certificate. Returns 0, -EINVAL (the name, or a key
 * that is not PEM) or -EIO. */
int csr_renew(struct str name, struct str key_pem, struct buf *ret_csr_pem, struct err *err);

/* The content of a certificate. */
struct cert_facts {
        char name[CSR_NAME_MAX + 1]; /* common name */
        char serial[41];             /* lower-case hexadecimal */
        char fingerprint[65];        /* SHA-256 of its DER, lower-case hexadecimal */
        int64_t from_ms, until_ms;   /* Unix milliseconds */
};
int cert_facts(struct str cert_pem, struct cert_facts *ret, struct err *err); /* 0 or -EINVAL */
/* Returns whether both can be read and the certificate is for this key. */
bool cert_fits_key(struct str cert_pem, struct str key_pem);
