/* tls: TLS contexts. TLS 1.3 only (RFC 8446), certificates and keys as PEM text in memory. A peer's
 * certificate may begin in the future, since its CA's clock may be ahead. auth/ca makes the
 * certificates. */
#pragma once
#include "base/err.h"
#include "base/str.h"

#define TLS_SECRET_BYTES 32

struct tls_context;
struct tls_config {
        struct str ca_pem; /* CA that signs trusted peers; empty: the fingerprint decides, or no peer is
                              trusted */
        struct str cert_pem, key_pem; /* ours; empty: none */
        struct str ca_fingerprint;    /* clients: SHA-256 of the CA certificate's DER, hexadecimal: the chain
                                         must    contain it; used to join before the CA is known */
        const char
                *server_name; /* clients: the name the server's certificate must have; NULL: any of our CA */
        bool ask_client;      /* servers: ask for a certificate; none is allowed, a wrong one is not */
        /* Servers that ask clients: TLS_SECRET_BYTES from which keys of tickets are derived, the same after a
         * restart, so that clients can resume their sessions (stream_send_ticket). Copied. NULL: none can. */
        const unsigned char *ticket_secret;
};
/* Makes a server's context. 0; or -EINVAL with err. Contexts are reference-counted: a stream keeps its own
 * alive. */
int tls_server_new(const struct tls_config *c, struct tls_context **ret, struct err *err);
/* Replaces the certificate for new connections; open ones keep theirs. Call this on the thread on
 * which the context's connections are made. 0; -EINVAL with err, and nothing has changed. */
int tls_server_renew(struct tls_context *t, struct str cert_pem, struct str key_pem, struct err *err);
/* A client's context keeps the ticket that its last connection got, and resumes that session in the next one:
 * a client that comes back uses the same context. */
int tls_client_new(const struct tls_config *c, struct tls_context **ret, struct err *err);
void tls_unref(struct tls_context *t); /* NULL is fine */
