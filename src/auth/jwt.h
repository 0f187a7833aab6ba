/* jwt: JSON Web Tokens (RFC 7519), signed with RS256 or ES256 (RFC 7515, RFC 7518) by a key of their issuer's
 * set (RFC 7517).
 *
 * The sender controls everything in a token, so the key determines the algorithm: an RSA key verifies only
 * RS256, a P-256 key only ES256, and a set has no symmetric keys. Keys in a token, or links to them, are
 * ignored. Verification proves who issued the claims; the caller must check their values.
 */
#pragma once
#include "base/err.h"
#include "base/format/json_read.h"
#include "base/str.h"

#define JWT_TEXT_MAX 65536u /* bytes of a token */
#define JWT_KEYS_MAX 64u    /* keys in a set */

struct jwt_keys;
/* Reads a set. Keys that cannot verify such tokens are left out: of other types, curves, sizes, uses and
 * algorithms. 0, also for a set of none; -EINVAL with err: the text is no set, or has more than JWT_KEYS_MAX.
 */
int jwt_keys_parse(struct str json, struct jwt_keys **ret, struct err *err);
void jwt_keys_free(struct jwt_keys *keys); /* NULL is fine */
size_t jwt_keys_count(const struct jwt_keys *keys);

enum jwt_error {
        JWT_NO_KEY = 1, /* the set has no key of the token's name, and may be older than the token */
};
/* Verifies a token in the compact form. 0, and the caller owns the claims, an object; JWT_NO_KEY with err;
 * -EACCES with err for every other token. */
int jwt_verify(const struct jwt_keys *keys, struct str token, json_t **ret_claims, struct err *err);
