#include "auth/id_token.h"

#include <errno.h>
#include <openssl/crypto.h>

#include "base/mem.h"

#define SUBJECT_MAX 255u /* OpenID Connect Core 1.0, 2 */
#define SECONDS_MAX 1e12
#define LIST_MAX    4096u /* elements of a claim that are looked at */

static struct str id_token_text_of(const json_t *claims, const char *member)
{
        const json_t *v = json_object_get(claims, member);

        return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR_NONE;
}

/* Returns whether a claim is this text, or a list that has it. */
static bool claim_has(const json_t *claim, const char *value)
{
        size_t n = json_array_size(claim);

        if (json_is_string(claim))
                return str_eqz(str_make(json_string_value(claim), json_string_length(claim)), value);
        for (size_t i = 0; i < n && i < LIST_MAX; i++) {
                const json_t *v = json_array_get(claim, i);

                if (json_is_string(v) &&
                    str_eqz(str_make(json_string_value(v), json_string_length(v)), value))
                        return true;
        }
        return false;
}

/* Reads a time in seconds, which need not be whole (RFC 7519, 2). False: there is none. */
static bool time_of(const json_t *claims, const char *member, int64_t *ret_ms)
{
        const json_t *v = json_object_get(claims, member);
        double s = json_is_number(v) ? json_number_value(v) : -1;

        if (!(s >= 0 && s <= SECONDS_MAX))
                return false;
        *ret_ms = (int64_t)(s * 1000);
        return true;
}

static int check_times(const json_t *claims, int64_t now_ms, struct err *err)
{
        int64_t issued = 0, expires = 0, begins = 0;

        if (!time_of(claims, "exp", &expires) || !time_of(claims, "iat", &issued))
                return err_set(err, -EACCES, "the token does not say when it was issued and when it expires");
        if (expires + ID_TOKEN_SKEW_MS <= now_ms)
                return err_set(err, -EACCES,
                               "the token expired %lld s ago: compare the clocks of both machines",
                               (long long)(now_ms - expires) / 1000);
        if (issued - ID_TOKEN_SKEW_MS > now_ms ||
            (json_object_get(claims, "nbf") &&
             (!time_of(claims, "nbf", &begins) || begins - ID_TOKEN_SKEW_MS > now_ms)))
                return err_set(err, -EACCES,
                               "the token is of the future: compare the clocks of both machines");
        if (issued + ID_TOKEN_AGE_MS + ID_TOKEN_SKEW_MS <= now_ms)
                return err_set(err, -EACCES, "the token was issued %lld s ago, and not for this sign-in",
                               (long long)(now_ms - issued) / 1000);
        return 0;
}

int id_token_check(const json_t *claims, const struct id_token_wanted *w, struct err *err)
{
        struct str issuer = id_token_text_of(claims, "iss"), subject = id_token_text_of(claims, "sub"),
                   nonce = id_token_text_of(claims, "nonce");
        const json_t *audience = json_object_get(claims, "aud"), *party = json_object_get(claims, "azp");

        if (!str_eqz(issuer, w->issuer))
                return err_set(err, -EACCES, "the token's issuer is '" STR_FMT "', not '%s'",
                               STR_ARG(str_head(issuer, 120)), w->issuer);
        if (subject.n == 0 || subject.n > SUBJECT_MAX)
                return err_set(err, -EACCES, "the token says no subject of 1 to %u bytes", SUBJECT_MAX);
        if (!claim_has(audience, w->client_id))
                return err_set(err, -EACCES, "the token is for another client than '%s'", w->client_id);
        if ((party || json_array_size(audience) > 1) &&
            !(json_is_string(party) && claim_has(party, w->client_id)))
                return err_set(err, -EACCES, "the token was issued to another client than '%s'",
                               w->client_id);
        if (nonce.n != strlen(w->nonce) || CRYPTO_memcmp(nonce.p, w->nonce, nonce.n) != 0)
                return err_set(err, -EACCES, "the token is of another sign-in: its nonce differs");
        return check_times(claims, w->now_ms, err);
}

/* ---- users */

void id_token_users_deinit(struct id_token_users *u)
{
        for (size_t i = 0; i < u->allow_count; i++) {
                free(u->allow[i].claim);
                for (size_t n = 0; u->allow[i].values && u->allow[i].values[n]; n++)
                        free(u->allow[i].values[n]);
                free(u->allow[i].values);
        }
        free(u->claim);
        free(u->suffix);
        free(u->domain);
        *u = (struct id_token_users){0};
}

static bool rule_holds(const struct id_token_rule *rule, const json_t *claims)
{
        const json_t *claim = json_object_get(claims, rule->claim);

        for (size_t i = 0; rule->values[i]; i++)
                if (claim_has(claim, rule->values[i]))
                        return true;
        return false;
}

/* An address that the provider has not verified is what anybody may have typed there. */
static bool address_unverified(const json_t *claims, const char *claim)
{
        return strcmp(claim, "email") == 0 && !json_is_true(json_object_get(claims, "email_verified"));
}

int id_token_user(const json_t *claims, const struct id_token_users *u, struct buf *ret_who, struct err *err)
{
        struct str name = id_token_text_of(claims, u->claim), suffix = str_of(u->suffix);
        bool by_address = address_unverified(claims, u->claim);

        for (size_t i = 0; i < u->allow_count; i++) {
                if (!rule_holds(&u->allow[i], claims))
                        return err_set(err, -EACCES, "the claim '%s' has no value that 'allow' lists",
                                       u->allow[i].claim);
                by_address = by_address || address_unverified(claims, u->allow[i].claim);
        }
        if (by_address)
                return err_set(err, -EACCES,
                               "the provider has not verified the user's address (email_verified)");
        if (!u->everybody && u->allow_count == 0)
                return err_set(err, -EACCES, "'allow' admits nobody");
        if (name.n == 0)
                return err_set(err, -EACCES, "the provider says no '%s' of the user", u->claim);
        if (!str_ends(name, suffix))
                return err_set(err, -EACCES, "the user's '%s' does not end with '%s'", u->claim, u->suffix);
        name = str_head(name, name.n - suffix.n);
        /* jobs of alice@elsewhere@lab would have the Owner of alice@lab's */
        if (str_find(name, '@') >= 0)
                return err_set(
                        err, -EACCES,
                        "the user's '%s' has an @, and is no user's name here: set user_suffix to what "
                        "stands from it on",
                        u->claim);
        if (principal_print(ret_who, name, str_of(u->domain)) != 0)
                return err_set(err, -EACCES, "'" STR_FMT "@%s' is not a user's name here",
                               STR_ARG(str_head(name, 80)), u->domain);
        return 0;
}
