/* id_token: what an ID token of OpenID Connect must say, and which user of ours it is about.
 *
 * The claims are those of a token whose signature was verified (auth/jwt.h), so the provider has said them.
 * Some claims are what the user has typed at the provider, and a provider may serve people who are strangers
 * here. So the settings name the claim that is the user's name, and whom they admit. Pure. */
#pragma once
#include "auth/principal.h"
#include "base/err.h"
#include "base/format/json_read.h"

#define ID_TOKEN_SKEW_MS   60000        /* by which the provider's clock may differ from ours */
#define ID_TOKEN_AGE_MS    (10 * 60000) /* since it was issued */
#define ID_TOKEN_RULES_MAX 16u

/* What was asked for. */
struct id_token_wanted {
        const char *issuer, *client_id, *nonce;
        int64_t now_ms; /* Unix time */
};
/* Checks the claims of a token that answers a code (OpenID Connect Core 1.0, 3.1.3.7). 0; -EACCES with err.
 */
int id_token_check(const json_t *claims, const struct id_token_wanted *wanted, struct err *err);

/* Who is who: part of the server's settings. */
struct id_token_rule {
        char *claim;   /* its value, or one of its list's, must be one of the values */
        char **values; /* NULL behind the last */
};
struct id_token_users {
        char *claim;  /* the one that is the user's name */
        char *suffix; /* what it must end with, and what is cut off it; NULL: nothing */
        char *domain; /* the principal is NAME@domain */
        struct id_token_rule allow[ID_TOKEN_RULES_MAX]; /* all must hold */
        size_t allow_count;
        bool everybody; /* instead of the rules */
};
void id_token_users_deinit(struct id_token_users *u);
/* Appends the user's principal. 0; -EACCES with err: the rules do not admit the user, or the claim makes no
 * name. */
int id_token_user(const json_t *claims, const struct id_token_users *users, struct buf *ret_who,
                  struct err *err);
