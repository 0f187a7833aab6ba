/* Sets of keys and ID tokens of a provider of OpenID Connect: a line with the set, a line with the token. */
#include <stdint.h>
#include <stdlib.h>

#include "auth/id_token.h"
#include "auth/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The checks of claims, which nobody has signed here. */
static void check_claims(struct str text)
{
        static const struct id_token_wanted wanted = {"https://sso.example", "drover", "n", 1700000000000};
        struct id_token_users users = {
                .claim = (char[]){"sub"}, .domain = (char[]){"lab"}, .everybody = true};
        json_t *claims = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
        BUF_CLEANUP struct buf who = {0};
        struct str name, domain;
        struct err err;

        if (json_is_object(claims)) {
                id_token_check(claims, &wanted, &err);
                if (id_token_user(claims, &users, &who, &err) == 0 &&
                    principal_split(buf_view(&who), &name, &domain) != 0)
                        abort();
        }
        json_decref(claims);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct str rest = str_make((const char *)data, size), set;
        struct jwt_keys *keys;
        json_t *claims;
        struct err err;

        if (!str_cut(&rest, '\n', &set))
                return 0;
        check_claims(set);
        if (jwt_keys_parse(set, &keys, &err) != 0)
                return 0;
        if (jwt_verify(keys, str_trim(rest), &claims, &err) == 0)
                json_decref(claims);
        jwt_keys_free(keys);
        return 0;
}
