/* private: shared by the files of ev/, and included nowhere else. */
#pragma once
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/buf.h"
#include "base/err.h"
#include "ev/loop.h"
#include "ev/tls.h"

/* mailbox_new that returns NULL with errno when there are no descriptors left. */
struct mail;
struct mailbox *mailbox_try_new(struct loop *l, void (*fn)(void *arg, struct mail *m),
                                void (*idle)(void *arg), void *arg);

/* Children that were forgotten but not reaped yet: loop_free gives their memory back. */
struct child;
struct child **loop_children(struct loop *l);
void children_release(struct loop *l);

/* Returns whether this turn of the loop may do one more piece of costly work: a TLS handshake, which takes a
 * millisecond of processor time. The number for a turn is limited, so that open connections do not wait.
 * False: try again in the next turn, in which readiness is reported again. */
bool loop_take_costly(struct loop *l);

/* Makes a watch for reading report each write to an eventfd once, whether or not it is read: a system call
 * less. */
void watch_edge(struct watch *w);

/* A new connection in the context's role; the SSL holds a reference to the context. */
SSL *tls_connection(struct tls_context *t, int fd);
/* Applies the verification rules of a client's context to another library's SSL_CTX (libcurl's). t has a
 * fingerprint, and neither a certificate nor a server's name; it outlives ctx. */
void tls_client_rules(struct tls_context *t, SSL_CTX *ctx);
bool tls_is_server(const struct tls_context *t);
bool tls_gives_tickets(const struct tls_context *t); /* a server's, with a secret */
void tls_ref(struct tls_context *t);
/* Describes why the handshake or the connection failed, from OpenSSL's errors (which are cleared) or from
 * errno. */
void tls_explain(SSL *ssl, int error, struct err *why);
void tls_verdict(long verdict, struct err *why); /* describes a result of X509_verify_cert */
/* Gives common name and serial of the peer's verified certificate; empty when there is none. */
void tls_peer(SSL *ssl, struct buf *name, struct buf *serial);
