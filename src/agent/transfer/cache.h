/* cache: file contents that the agent keeps for later jobs, in one folder.
 *
 * Contents are stored once, in a file named by its SHA-256, whatever number of names refer to them. A name
 * is the key of a URL (base/job/file_key.h). Files that were shipped with a submit have no name and are found
 * by their checksum. A job gets a copy, so that it cannot change what later jobs get.
 *
 * A crash cannot corrupt the cache. Contents are written under a temporary name and renamed when their
 * checksum is known; contents from before the start of the agent count as unchecked, and a user of them must
 * have them summed first. The index (names, versions, last use) is a file with a checksum of its own; if it
 * is lost, contents are kept and names are lost.
 *
 * A caller of cache_keep must have computed the checksum itself, and no less trusted process may ever have
 * had the file open for writing: such a process writes into a scratch file, which is copied and summed
 * during the copy.
 *
 * The cache holds at most `limit` bytes, and CACHE_FILES_MAX files and as many names; the least recently
 * used contents are evicted first. Pinned contents and files being written are never evicted, so the limit
 * may be exceeded while jobs need them. One thread; no call waits for more than a directory operation.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/job/file_id.h"
#include "move/task.h"
#include "place/lru.h"

#define CACHE_FILES_MAX 100000u

struct cached_name {
        struct cached_name *next; /* next name of the same contents */
        struct cached *contents;
        char *key;
        uint64_t id; /* hash of the key, by which the server knows the file (base/job/file_key.h) */
        struct move_facts facts; /* the version at the URL */
        int64_t confirmed_ms;    /* Unix time at which the version was last confirmed */
};
struct cached {
        struct lru_node use; /* size and pins */
        unsigned char sha256[32];
        uint64_t id;
        int64_t used_ms; /* Unix time */
        bool checked;    /* the checksum was verified since the agent started */
        struct cached_name *names;
};

struct cache;
/* Opens the cache in the folder `name` beneath dirfd, which stays the caller's; makes the folder if it is
 * missing. path: absolute name of the folder. limit: bytes. Returns NULL with err on failure. */
struct cache *cache_open(int dirfd, const char *name, const char *path, uint64_t limit, struct err *err);
void cache_close(struct cache *c); /* writes the index; NULL is allowed */
void cache_write(struct cache *c); /* writes the index if it has changed */

struct cached *cache_find(struct cache *c, const unsigned char sha256[32]);
struct cached_name *cache_find_name(struct cache *c, struct str key);
void cache_touch(struct cache *c, struct cached *e, int64_t now_ms); /* marks it as the most recently used */
void cache_pin(struct cached *e);
void cache_unpin(struct cache *c, struct cached *e);
void cache_path(const struct cache *c, const struct cached *e, struct buf *out);
int cache_open_contents(const struct cache *c,
                        const struct cached *e); /* opens the contents for reading: a descriptor, or -errno */

/* Makes a temporary file, open for reading and writing, and stores its name in `part`. Returns a descriptor,
 * or -errno. */
int cache_begin(struct cache *c, char part[32]);
/* Makes a temporary file without a name, which is gone when its last descriptor is closed. Returns a
 * descriptor, or -errno. */
int cache_scratch(struct cache *c);
/* Returns the free bytes of the cache's file system. */
uint64_t cache_disk_free(const struct cache *c);
void cache_abandon(struct cache *c, const char *part);
/* Turns a complete temporary file with this checksum into contents; if the cache has the same contents
 * already, the temporary file is removed and *ret is those. Returns 0 or -errno. */
int cache_keep(struct cache *c, const char *part, const unsigned char sha256[32], uint64_t size,
               int64_t now_ms, struct cached **ret);
/* Records that these are the contents at `key` (base/job/file_key.h) now. The key's former contents lose the
 * name. */
struct cached_name *cache_name(struct cache *c, struct cached *e, struct str key,
                               const struct move_facts *facts, int64_t now_ms);
/* Removes contents that turned out to be wrong. They must not be pinned. */
void cache_drop(struct cache *c, struct cached *e);
/* Evicts contents until at most `bytes`, and at most the limit, are held. */
void cache_trim(struct cache *c, uint64_t bytes);
uint64_t cache_bytes(const struct cache *c);

/* Registers something that another part keeps, such as an image, so that the server is told of it like of
 * contents. size UINT64_MAX removes it. */
void cache_other(struct cache *c, uint64_t id, uint64_t size);
/* Calls fn for every file that was added or removed since the last call, or for all that are present
 * (`all`). Each id is reported once, with its size; UINT64_MAX means removed. */
void cache_changes(struct cache *c, bool all, void (*fn)(void *arg, uint64_t id, uint64_t size), void *arg);
bool cache_changed(const struct cache *c);
