/* tls: certificates in use. TLS 1.3 only (RFC 8446), certificates and keys as PEM text in memory. A peer's
 * certificate may begin in the future: the clock of who made it was ahead. (Making certificates is
 * auth/ca's.) */
#pragma once
#include "base/err.h"
#include "base/str.h"

struct tls_context;
struct tls_config {
        struct str ca_pem; /* who signs the peers we believe; empty: the fingerprint decides, or nobody */
        struct str cert_pem, key_pem; /* ours; empty: none */
        struct str ca_fingerprint;    /* clients: SHA-256 of the CA certificate's DER, hexadecimal: the chain
                                         must    contain it; used to join before the CA is known */
        const char
                *server_name; /* clients: the name the server's certificate must have; NULL: any of our CA */
        bool ask_client;      /* servers: ask for a certificate; none is allowed, a wrong one is not */
};
/* 0; or -EINVAL with err. Reference-counted by its users: a stream keeps it alive. */
int tls_server_new(const struct tls_config *c, struct tls_context **ret, struct err *err);
/* Connections from now on show this certificate; those that are open go on with theirs. On the thread on
 * which the context's connections are made. 0; -EINVAL with err, and nothing has changed. */
int tls_server_renew(struct tls_context *t, struct str cert_pem, struct str key_pem, struct err *err);
int tls_client_new(const struct tls_config *c, struct tls_context **ret, struct err *err);
void tls_unref(struct tls_context *t); /* NULL is fine */
