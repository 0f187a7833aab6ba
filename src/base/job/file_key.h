/* file_key: the cache key of a URL's contents, such that no user is given contents that the user could not
 * have fetched.
 *
 * A file of a configured store that is fetched without a credential is the same for all users: its key is its
 * name (base/job/file_id.h). The contents of any other URL may depend on the requester. Its key has a line
 * before the name with the requester and the name of the credential, if any; and a URL with a user is kept as
 * written, because names have no user. Agents use these keys for their caches, and report the number of each
 * key (file_id) to the server; the core numbers the inputs of jobs by the same function, so a file counts as
 * present exactly where the job would be given it.
 */
#pragma once
#include "base/job/file_id.h"

struct file_credential { /* name and scope of a credential; borrowed */
        struct str name;
        struct str urls; /* URLs that it is shown to: prefixes made by file_prefix, separated by blanks */
        bool s3;         /* an S3 key: without urls it is shown to all of s3:// */
};
struct file_asker { /* who asks; borrowed */
        struct str who;
        const struct file_credential *credentials; /* of the job, in the order in which it names them */
        size_t credential_count;
};

/* Appends the identity of the asker: the job's owner. A job delegated by another server also has the first
 * server and its owner there, because many owners there may be one owner here; else first_server is empty. */
void file_asker_who(struct str owner, struct str first_server, struct str first_owner, struct buf *out);

/* Returns the index of the credential that is shown to a URL: the one with the longest matching prefix, the
 * first of equals. credential_count: none. */
size_t file_asker_shows(const struct file_asker *r, struct str url);

/* Appends an alternative URL of the same file, under the n-th prefix of its store, not counting the URL's own
 * prefix. False, with nothing added: there are no more, or the URL has a user, who is known under one prefix
 * only. */
bool file_other_way(struct str url, const struct store_urls *store, size_t n, struct buf *out);

/* Appends the URL in canonical form, under the prefix of the store that it is below. All URLs with one key
 * are fetched by one name: to some stores "/a//f" and "/a/x/%2e%2e/f" are other files than "/a/f". False,
 * with nothing added: the URL is below no prefix of the store, or has a user. */
bool file_own_way(struct str url, const struct store_urls *store, struct buf *out);

/* Returns whether the contents under this key are the same for all users. */
bool file_key_is_common(struct str key);

/* Appends the key of a URL. *ret_store (may be NULL) is set as in file_url. False, with nothing added: the
 * text is no URL. */
bool file_key(struct str url, const struct file_asker *r, const struct store_urls *stores, size_t count,
              struct buf *out, size_t *ret_store);
