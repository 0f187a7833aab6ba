/* file_id: one name and one number for a file, independent of the spelling of its URL.
 *
 * The name of a file is its URL in canonical form: scheme and host in lower case, no user, no default port,
 * no fragment, no "." and ".." in the path and no unnecessary percent escapes (RFC 3986, 6.2.2), so that the
 * location cannot be disguised; a path without a scheme is file://PATH. If a store (a configured place for
 * files) has a prefix of the URL, that prefix is replaced by the store's first one, so that root://se.x//a/b
 * and https://se.x/a/b are one file. Between agents and server a file is identified by the first 64 bits of
 * the SHA-256 of its name, or of its key if it is not public (base/job/file_key.h). A spooled object, which
 * has a checksum and no URL, is identified by the first 64 bits of the checksum.
 */
#pragma once
#include "base/buf.h"

#define FILE_URL_MAX 4096u

struct store_urls { /* name and prefixes of a store; borrowed */
        struct str name;
        const struct str *prefixes; /* canonical, see file_prefix */
        size_t prefix_count;
};
#define FILE_STORE_NONE SIZE_MAX

/* Adds the canonical form of `url` to *out, and says which store it is in: an index, or FILE_STORE_NONE; the
 * longest prefix that fits wins. False, with nothing added: it is no URL and no absolute path, or too long.
 * ret_store may be NULL. */
bool file_url(struct str url, const struct store_urls *stores, size_t count, struct buf *out,
              size_t *ret_store);
/* Appends the canonical form of a store's prefix: that of file_url, with '/' at its end. False: the prefix is
 * no URL. */
bool file_prefix(struct str prefix, struct buf *out);

/* Returns whether a name made by file_url is below a prefix. Several slashes in a row count as one. */
bool file_is_below(struct str canonical, struct str prefix);

uint64_t file_id(struct str name);                           /* name: made by file_url or file_key */
uint64_t file_id_of_content(const unsigned char sha256[32]); /* of a spooled object */
