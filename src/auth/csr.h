/* csr: a key of our own and a request to have it certified. The agent's half of joining; it needs nothing of
 * the store, so the agent links only this. PEM text throughout (RFC 7468); the key is EC P-256 (PKCS#8), the
 * request PKCS#10 (RFC 2986).
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define CSR_NAME_MAX 64 /* bytes of a common name, RFC 5280 ub-common-name */

/* Letters, digits and . _ - only, not beginning with one of these: it is a file name and a host name too. */
bool csr_name_valid(struct str name);

/* Makes a key and a request for `name`. Both are appended. 0; -EINVAL for a name that is not valid; -EIO when
 * OpenSSL fails. */
int csr_make(struct str name, struct buf *ret_key_pem, struct buf *ret_csr_pem, struct err *err);
/* A request for the key that is there, for renewing. 0, -EINVAL (name, or not a key in PEM), -EIO. */
int csr_renew(struct str name, struct str key_pem, struct buf *ret_csr_pem, struct err *err);

/* What a certificate says of itself. */
struct cert_facts {
        char name[CSR_NAME_MAX + 1]; /* common name */
        char serial[41];             /* lower-case hexadecimal */
        char fingerprint[65];        /* SHA-256 of its DER, lower-case hexadecimal */
        int64_t from_ms, until_ms;   /* Unix milliseconds */
};
int cert_facts(struct str cert_pem, struct cert_facts *ret, struct err *err); /* 0 or -EINVAL */
/* Can both be read, and is the certificate for this key? */
bool cert_fits_key(struct str cert_pem, struct str key_pem);
