/* credentials: the credentials that users have given, by owner and name, encrypted in the store.
 *
 * A credential's data, in the store (blobs credential/OWNER/NAME) and in memory, is encrypted with
 * AES-256-GCM under a key in a file beside the store, so a copy of the store or a snapshot does not reveal
 * it. Owner, name and URLs are authenticated with the data, so a credential cannot be moved to another name
 * or redirected to another storage server. If the key file is lost, users have to give their credentials
 * again. One thread at a time.
 */
#pragma once
#include "auth/credential.h"
#include "base/buf.h"
#include "store/store.h"

#define CREDENTIALS_OF_ONE_MAX 100u    /* per owner */
#define CREDENTIALS_MAX        100000u /* of all owners together */
#define CREDENTIAL_URLS_MAX    32u     /* per credential */

struct credentials;
struct credential {
        const char *owner, *name;
        enum credential_type type;
        int64_t updated_ms, expires_ms; /* expires_ms 0: unknown */
        const char *urls; /* prefixes of the URLs whose transfers use the credential, as file_prefix makes
                             them, separated by blanks */
};

/* Reads the key, which is made (mode 0600) if there is none, and all credentials of the store. Returns 0, or
 * -errno with err. *ret is set in both cases, and the caller frees it. */
int credentials_open(struct store *s, const char *key_path, struct credentials **ret, struct err *err);
void credentials_free(struct credentials *cs); /* accepts NULL */
struct credential_new {
        enum credential_type type;
        struct str data;
        const struct str *urls; /* URLs to use the credential for, as the owner writes them */
        size_t url_count;
        bool keep_urls; /* keep the URLs of the credential that is replaced; `urls` is empty then */
};
/* Adds a credential or replaces the owner's credential of this name, in memory and in the batch. Returns 0,
 * or with err -EINVAL (name, data or URLs are invalid) -E2BIG (too many) or -EIO (encryption failed); on an
 * error nothing has changed.
 */
int credentials_put(struct credentials *cs, struct str owner, struct str name,
                    const struct credential_new *what, int64_t now_ms, struct store_batch *batch,
                    struct err *err);
/* Removes a credential, in memory and in the batch. Returns false if there is none of this name. */
bool credentials_remove(struct credentials *cs, struct str owner, struct str name, struct store_batch *batch);
/* Returns a credential, borrowed until it is replaced or removed, or NULL if there is none of this name. */
const struct credential *credentials_find(const struct credentials *cs, struct str owner, struct str name);
/* Iterates over all credentials, unordered: size_t at = 0; while (credentials_next(cs, &at, &c)). */
bool credentials_next(const struct credentials *cs, size_t *at, const struct credential **ret);
/* Appends the decrypted data to ret_data; the caller clears it (explicit_bzero). Returns 0, or -EBADMSG if
 * the credential was encrypted with another key or is damaged; then ret_data is as before. */
int credentials_read(const struct credentials *cs, const struct credential *c, struct buf *ret_data);
