/* openid: signing in at the page by a provider of OpenID Connect.
 *
 * A browser is sent to the provider with a state, a nonce and a challenge, which are made of a secret in a
 * cookie of its own and of a key of this process, so nothing is kept for strangers. When it comes back, the
 * cookie must fit the state, which is good once and for OPENID_VALID_MS. The user whom the ID token names
 * gets a session as page.h has it; the session's token is made for it, with a secret that nobody has, and is
 * listed and revoked as others are. The provider's tokens are not kept. I/O thread. */
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
