/* credentials: those that users have given, by owner and name, encrypted in the store.
 *
 * What is in the store (blobs credential/OWNER/NAME) and in memory is encrypted with AES-256-GCM under a key
 * that is a file of its own beside the store, so that a copy of the store, a snapshot or a core dump tells
 * none; owner, name and what it is for are part of what is authenticated, so that nobody's can be moved under
 * another name or turned to another store.
 * Without the key file's contents nothing can be read any more, and is to be given anew. One thread at a
 * time.
 */
#pragma once
#include "auth/credential.h"
#include "base/buf.h"
#include "store/store.h"

#define CREDENTIALS_OF_ONE_MAX 100u    /* of an owner */
#define CREDENTIALS_MAX        100000u /* of all */
#define CREDENTIAL_URLS_MAX    32u     /* that one is for */

struct credentials;
struct credential {
        const char *owner, *name;
        enum credential_type type;
        int64_t updated_ms, expires_ms; /* expires_ms 0: it does not say */
        const char *urls; /* what transfers of jobs show it to: prefixes as file_prefix makes them, parted by
                             blanks */
};

/* The key is made (0600) when there is none. 0 or -errno with err. */
int credentials_open(struct store *s, const char *key_path, struct credentials **ret, struct err *err);
void credentials_free(struct credentials *cs); /* NULL is fine */
struct credential_new {
        enum credential_type type;
        struct str data;
        const struct str *urls; /* what it is for, as its owner writes it */
        size_t url_count;
        bool keep_urls; /* those of the one of this name, instead */
};
/* Adds it, or takes the place of the one of this name; into the batch. 0; -EINVAL, -E2BIG with err. */
int credentials_put(struct credentials *cs, struct str owner, struct str name,
                    const struct credential_new *what, int64_t now_ms, struct store_batch *batch,
                    struct err *err);
/* False: there is none. */
bool credentials_remove(struct credentials *cs, struct str owner, struct str name, struct store_batch *batch);
/* Borrowed until it is put or removed. NULL: there is none. */
const struct credential *credentials_find(const struct credentials *cs, struct str owner, struct str name);
/* In no order. size_t at = 0; while (credentials_next(cs, &at, &c)). */
bool credentials_next(const struct credentials *cs, size_t *at, const struct credential **ret);
/* Its contents; the caller clears them (explicit_bzero). 0, or -EBADMSG: it was encrypted with another key.
 */
int credentials_read(const struct credentials *cs, const struct credential *c, struct buf *ret_data);
