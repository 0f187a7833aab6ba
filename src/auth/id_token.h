/* id_token: checks the claims of an OpenID Connect ID token, and maps them to a user of this server.
 *
 * The claims come from a token whose signature was verified (auth/jwt.h), so the provider has issued them.
 * Users may be able to choose some claims at the provider, and a provider may serve people who are not users
 * of this server. The settings therefore name the claim that contains the user's name, and the claims that
 * admit a user. Pure.
 */
#pragma once
#include "auth/principal.h"
#include "base/err.h"
#include "base/format/json_read.h"

#define ID_TOKEN_SKEW_MS   60000        /* by which the provider's clock may differ from ours */
#define ID_TOKEN_AGE_MS    (10 * 60000) /* since it was issued */
#define ID_TOKEN_RULES_MAX 16u

/* The expected values of a sign-in. */
struct id_token_wanted {
        const char *issuer, *client_id, *nonce;
        int64_t now_ms; /* Unix time */
};
/* Checks the claims of a token that answers a code (OpenID Connect Core 1.0, 3.1.3.7). 0; -EACCES with err.
 */
int id_token_check(const json_t *claims, const struct id_token_wanted *wanted, struct err *err);

/* The mapping of claims to users: part of the server's settings. */
struct id_token_rule {
        char *claim;   /* its value, or an element of its list, must be one of the values */
        char **values; /* up to NULL */
};
struct id_token_users {
        char *claim;                                    /* the claim with the user's name */
        char *suffix;                                   /* required ending, which is removed; NULL: none */
        char *domain;                                   /* the principal is NAME@domain */
        struct id_token_rule allow[ID_TOKEN_RULES_MAX]; /* all must hold */
        size_t allow_count;
        bool everybody; /* instead of the rules */
};
void id_token_users_deinit(struct id_token_users *u);
/* Appends the user's principal. 0; -EACCES with err: the rules do not admit the user, or the claim makes no
 * name. */
int id_token_user(const json_t *claims, const struct id_token_users *users, struct buf *ret_who,
                  struct err *err);
