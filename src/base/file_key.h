/* file_key: what an agent keeps the contents of a URL under, so that nobody is given what he could not have
 * fetched himself.
 *
 * What a configured store has, asked for without a credential, is the same for all: its key is its name
 * (base/file_id.h). Anything else may depend on who asks. Its key has a line before the name with who that
 * is, and the name of the credential that is shown, if one is; and a URL with a user in it stays as it is
 * written, for names have no user. Agents keep their caches by these keys, and tell the server the number of
 * each (file_id); the core numbers what jobs read by the same function, so a file counts as held exactly
 * where the job would be given it.
 */
#pragma once
#include "base/file_id.h"

struct file_credential { /* as far as it decides what it is shown to; borrowed */
        struct str name;
        struct str urls; /* what it is for: prefixes as file_prefix makes them, parted by blanks */
        bool s3;         /* a key that is for nothing special is for all of s3:// */
};
struct file_asker { /* who asks; borrowed */
        struct str who;
        const struct file_credential *credentials; /* of the job, in the order in which it names them */
        size_t credential_count;
};

/* Adds who asks: a job's owner. A job that another server has handed on has the first server and its owner
 * there as well, for many of them may be the same one here; else first_server is empty. */
void file_asker_who(struct str owner, struct str first_server, struct str first_owner, struct buf *out);

/* Which credential is shown to a URL: the one that is for the longest prefix of it; of equals, the first.
 * credential_count: none. */
size_t file_asker_shows(const struct file_asker *r, struct str url);

/* Another way to the same file: the URL under the n-th prefix of its store, the one that it has left out.
 * False, with nothing added: there are no more, or the URL has a user, who is known to one way only. */
bool file_other_way(struct str url, const struct store_urls *store, size_t n, struct buf *out);

/* The URL as its key has it, under the prefix of the store that it is below. What has one key is asked for
 * by one name: to some stores "/a//f" and "/a/x/%2e%2e/f" are other files than "/a/f". False, with nothing
 * added: it is not below one, or has a user. */
bool file_own_way(struct str url, const struct store_urls *store, struct buf *out);

/* Is what has this key the same for all who ask? */
bool file_key_is_common(struct str key);

/* Adds the key. *ret_store (may be NULL) as in file_url. False, with nothing added: it is no URL. */
bool file_key(struct str url, const struct file_asker *r, const struct store_urls *stores, size_t count,
              struct buf *out, size_t *ret_store);
