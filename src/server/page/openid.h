/* openid: signing in at the page with an OpenID Connect provider.
 *
 * A browser is sent to the provider with a state, a nonce and a challenge, which are derived from a secret in
 * a cookie and a key of this process, so no state is kept for unauthenticated callers. When the browser
 * returns, its cookie must match the state, which is valid once and for OPENID_VALID_MS. The user of the ID
 * token gets a session as described in page.h. The session's token is created for it and its secret is not
 * given out; it is listed and revoked like other tokens. The provider's tokens are not stored. I/O thread.
 */
#pragma once
#include "server/calls/call.h"

#define OPENID_VALID_MS 600000
/* what `created_by` of a session's token begins with; the issuer follows. No principal has a colon. */
#define OPENID_MAKER "openid:"

struct openid;
/* Reads the client's secret; *ret is NULL if the settings name no provider. 0, or -errno with err. */
int openid_new(struct server *s, struct loop *l, struct openid **ret, struct err *err);
void openid_free(struct openid *o); /* before the HTTP server; NULL is fine */

/* The first steps of the routes. */
void openid_begin(struct server *s, struct call *c);
void openid_callback(struct server *s, struct call *c);
/* Tells how users sign in, and where they end their session with the provider. */
void openid_ways(struct server *s, struct call *c);
