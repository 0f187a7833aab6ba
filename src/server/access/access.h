/* access: who may use the server: the instance's authority, its tokens, and the certificates that it gave
 * to agents.
 *
 * Core thread, except access_tls (before the threads start) and access_tls_renew (I/O thread). Changes go
 * into the turn's batch, so replies that follow from them are sent TURN_DURABLE. */
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
        int64_t tokens_ms;      /* boot clock: when a server that follows read the tokens again; 0: never */
        int64_t issued_ms;      /* Unix time at which the server's certificate was issued; I/O thread */
        struct buf description; /* of /.well-known/drover; empty until the first call; core thread */
        char *own[2];           /* principals of the server's own user and of root; NULL: unknown */
};
int access_open(struct server *s, struct access **ret, struct err *err); /* 0, or an error with err */
void access_free(struct access *a);                                      /* accepts NULL */
/* Makes the server's certificate and the TLS context that asks agents for theirs. */
int access_tls(struct server *s, struct tls_context **ret, struct err *err);
/* Replaces the certificate in that context when the wall clock was set back to before the certificate's
 * beginning, or when it expires soon. Returns 1 if it was replaced, 0 if it is still good, or an error
 * with err. */
int access_tls_renew(struct access *a, const struct config *config, struct tls_context *tls, struct err *err);

/* Returns whether this is the principal of the server's own user or of root. Any thread. */
bool access_own(const struct server *s, const char *who);
/* Returns the role that the current settings give the user. Any thread. */
enum role access_role(const struct server *s, const char *who);
/* I/O thread: looks up the user of a bearer token (c->who stays NULL when the token is not valid), then
 * runs next. */
void access_bearer(struct call *c, struct str token, call_fn *next);
/* I/O thread: the same for a session's cookie. A call that changes anything must also carry the session's
 * second secret; otherwise it fails here with 403. */
void access_session(struct call *c, struct str cookie, call_fn *next);

/* Exchanges a join token for a certificate. Returns 0; or -EACCES or -EINVAL with err. */
int access_join(struct server *s, struct str token, struct str name, struct str csr_pem, struct buf *ret_name,
                struct buf *ret_cert, struct buf *ret_ca, struct err *err);
/* Checks that the holder of the certificate `serial` may act as the agent `name`. If csr_pem is not empty,
 * makes a new certificate, and *ret is that one; *ret is borrowed until certificates change. Returns 0; or
 * -EACCES with err. */
int access_agent(struct server *s, struct str name, struct str serial, struct str csr_pem,
                 struct buf *ret_cert, struct certificate *ret, struct err *err);
/* Revokes the certificates of an agent, and removes the join tokens that were made for its name. The
 * result counts those that were valid; both 0: there were none. */
struct access_revoked {
        size_t certificates, tokens;
};
struct access_revoked access_revoke(struct server *s, struct str name);
/* the agent had certificates, and all are revoked */
bool access_is_revoked(const struct access *a, struct str name);
void access_prune(struct server *s); /* forgets expired tokens and certificates; called once a day */
