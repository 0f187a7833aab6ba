/* What the files of ev/ share with each other; nobody else includes it. */
#pragma once
#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/buf.h"
#include "base/err.h"
#include "ev/loop.h"
#include "ev/tls.h"

/* As mailbox_new; NULL with errno when there are no descriptors left. */
struct mail;
struct mailbox *mailbox_try_new(struct loop *l, void (*fn)(void *arg, struct mail *m),
                                void (*idle)(void *arg), void *arg);

/* Children that were forgotten but not reaped yet: loop_free gives their memory back. */
struct child;
struct child **loop_children(struct loop *l);
void children_release(struct loop *l);

/* A turn of the loop has a few places for work that takes a millisecond of processor without a byte of use to
 * those who wait: TLS handshakes. False: this turn has had them; readiness is told again in the next. */
bool loop_take_costly(struct loop *l);

/* A new connection in the context's role; the SSL holds a reference to the context. */
SSL *tls_connection(struct tls_context *t, int fd);
/* Makes the rules of a client's context those of one that is not ours: libcurl's. The context has a
 * fingerprint, and neither a certificate nor a server's name; it lives as long as the other one. */
void tls_client_rules(struct tls_context *t, SSL_CTX *ctx);
bool tls_is_server(const struct tls_context *t);
void tls_ref(struct tls_context *t);
/* Why the handshake or the connection failed, in words, from OpenSSL's errors (which are cleared) or from
 * errno. */
void tls_explain(SSL *ssl, int error, struct err *why);
void tls_verdict(long verdict, struct err *why); /* the same, of what X509_verify_cert has found */
/* Common name and serial of the peer's verified certificate; empty when there is none. */
void tls_peer(SSL *ssl, struct buf *name, struct buf *serial);
