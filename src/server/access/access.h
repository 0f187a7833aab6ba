/* access: who may come in: the instance's authority, its tokens, and the certificates it gave to agents.
 *
 * Core thread, except access_tls (before the threads start) and access_tls_renew (I/O thread). What changes
 * goes into the turn's batch, so replies that follow from it are sent TURN_DURABLE.
 */
#pragma once
#include "auth/token.h"
#include "server/calls/call.h"

#include "auth/certificates.h"
#include "auth/session.h"

struct tls_context;
struct access {
        struct ca *ca;
        struct tokens *tokens;
        struct sessions *sessions; /* of browsers */
        struct certificates *certificates;
        struct credentials *credentials; /* of users, for their jobs */
        int64_t pruned_ms;
        int64_t issued_ms; /* Unix: the server's certificate; I/O thread */
        char *own[2];      /* principals of the user who runs the server, and of root; NULL: it has none */
};
int access_open(struct server *s, struct access **ret, struct err *err); /* 0, or an error with err */
void access_free(struct access *a);                                      /* NULL is fine */
/* A certificate of this run of the server, and the context that asks agents for theirs. */
int access_tls(struct access *a, const struct config *config, struct tls_context **ret, struct err *err);
/* Puts a new certificate into that context when the wall clock has been set back behind the beginning of the
 * one there, or near its end. 1: done; 0: there is no need; an error with err. */
int access_tls_renew(struct access *a, const struct config *config, struct tls_context *tls, struct err *err);

/* The role that a user has today, by the settings. Any thread. */
enum role access_role(const struct server *s, const char *who);
/* I/O thread: finds out whom a bearer token stands for (c->who stays NULL when it is none), then runs next.
 */
void access_bearer(struct call *c, struct str token, call_fn *next);
/* I/O thread: the same by a session's cookie. A call that changes anything must show the session's second
 * secret as well, else it fails here with 403. */
void access_session(struct call *c, struct str cookie, call_fn *next);

/* A token for a certificate. 0; or -EACCES, -EINVAL with err. */
int access_join(struct server *s, struct str token, struct str name, struct str csr_pem, struct buf *ret_name,
                struct buf *ret_cert, struct buf *ret_ca, struct err *err);
/* Checks that the owner of the certificate `serial` may act as the agent. If csr_pem is not empty a new
 * certificate is made, and *ret is that one; *ret is borrowed until certificates change. 0; or -EACCES with
 * err. */
int access_agent(struct server *s, struct str name, struct str serial, struct str csr_pem,
                 struct buf *ret_cert, struct certificate *ret, struct err *err);
/* The agent of this name is believed no more: its certificates are revoked, and tokens made for its name are
 * removed. How many of each were good; both 0 when there is none. */
struct access_revoked {
        size_t certificates, tokens;
};
struct access_revoked access_revoke(struct server *s, struct str name);
bool access_is_revoked(const struct access *a, struct str name); /* it had certificates, and has none */
void access_prune(struct server *s); /* forgets what is past its end; once a day */
