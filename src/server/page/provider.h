/* provider: a provider of OpenID Connect, as this server is its client (OpenID Connect Core 1.0, the code
 * flow).
 *
 * The provider's document and its keys are fetched when they are first needed, and again when they are an
 * hour old or a token names a key that is not among them. Every answer has a limit on its size and its time,
 * and redirections are not followed. Calls to the provider wait on the loop, never the thread. I/O thread. */
#pragma once
#include "base/buf.h"
#include "base/format/json_read.h"
#include "ev/loop.h"
#include "server/config/openid.h"

#define PROVIDER_WAITING_MAX 64u /* questions at the same time, shared among their holders (base/share.h) */

struct provider;
/* config is borrowed; secret is the client's, empty: it has none. */
struct provider *provider_new(struct loop *l, const struct config_openid *config, struct str secret);
/* Questions that wait are not answered any more: `drop` is called for each instead. NULL is fine. */
void provider_free(struct provider *p, void (*drop)(void *arg));

/* The answer: claims (owned by the callee) are those of a verified ID token and, with the setting userinfo,
 * of the userinfo endpoint. NULL of a redirection that was asked for, and after a failure: r is -EACCES (the
 * provider's answer is not to be trusted, or it refused the code), -EBUSY (PROVIDER_WAITING_MAX, or the
 * holder has its share) or another -errno, with err. May be called from within the question. */
typedef void provider_fn(void *arg, int r, json_t *claims, const struct err *err);

/* Asks that the document be there; then provider_authorize may be called, in the callback. The question
 * counts for `holder` until it is answered. */
void provider_prepare(struct provider *p, struct str holder, provider_fn *fn, void *arg);
/* What a sign-in has of its own. Texts are unreserved characters of URLs. */
struct provider_sign_in {
        const char *state, *nonce, *verifier; /* verifier: RFC 7636, 43 to 128 characters */
};
/* Appends the URL to which the browser is sent. */
void provider_authorize(const struct provider *p, const struct provider_sign_in *x, struct buf *ret_url);
/* Exchanges a code, which the browser has brought. x->state is not used. The question counts as above. */
void provider_redeem(struct provider *p, struct str holder, struct str code, const struct provider_sign_in *x,
                     provider_fn *fn, void *arg);
/* Appends the URL at which users end their session with the provider; nothing: none is known. */
void provider_sign_out(const struct provider *p, struct buf *ret_url);
