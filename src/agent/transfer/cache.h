/* cache: contents that the agent keeps for later jobs, in one folder.
 *
 * Contents are a file named by its SHA-256, and are there once, however many names they have: the keys of
 * URLs (base/file_key.h), or none (of files that came along with a submit, the checksum is the name). What a
 * job gets is a copy, so that nothing it does can change what the next one gets.
 *
 * A crash cannot corrupt it. Contents are written under a temporary name and renamed when their checksum is
 * known; what was there before the agent started counts as unchecked, and whoever wants to use it has it
 * summed first. The index (names, versions, last use) is a file of its own with a checksum; without it
 * contents are kept and names are lost.
 *
 * Who calls cache_keep has summed the file himself, and no process that is less trusted ever had it open for
 * writing: what such a process brings goes into a scratch file, which is copied and summed on the way.
 *
 * It holds `limit` bytes, and CACHE_FILES_MAX files and names; what was used longest ago goes first. What is
 * pinned stays, and so does what is being written: for as long as jobs need it, there may be more. One
 * thread; no call waits for more than the directory.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file_id.h"
#include "move/task.h"
#include "place/lru.h"

#define CACHE_FILES_MAX 100000u

struct cached_name {
        struct cached_name *next; /* of the same contents */
        struct cached *contents;
        char *key;
        uint64_t id;             /* of the key: what the server knows it by (base/file_key.h) */
        struct move_facts facts; /* of the version at the URL */
        int64_t confirmed_ms;    /* Unix time: when it was last known to be that version */
};
struct cached {
        struct lru_node use; /* its size, and how many use it */
        unsigned char sha256[32];
        uint64_t id;
        int64_t used_ms; /* Unix time */
        bool checked;    /* its checksum has been seen since the agent started */
        struct cached_name *names;
};

struct cache;
/* dirfd (kept by the caller) holds the folder `name`, which is made; path is its absolute name. */
struct cache *cache_open(int dirfd, const char *name, const char *path, uint64_t limit, struct err *err);
void cache_close(struct cache *c); /* writes the index; NULL is fine */
void cache_write(struct cache *c); /* the index, if it has changed */

struct cached *cache_find(struct cache *c, const unsigned char sha256[32]);
struct cached_name *cache_find_name(struct cache *c, struct str key);
void cache_use(struct cache *c, struct cached *e, int64_t now_ms); /* it is the newest now */
void cache_pin(struct cached *e);
void cache_unpin(struct cache *c, struct cached *e);
void cache_path(const struct cache *c, const struct cached *e, struct buf *out);
int cache_open_contents(const struct cache *c, const struct cached *e); /* for reading, or -errno */

/* A temporary file, open for reading and writing: a descriptor, or -errno. */
int cache_begin(struct cache *c, char part[32]);
/* The same without a name, so that it is gone with its last descriptor. */
int cache_scratch(struct cache *c);
/* Bytes that its file system has room for. */
uint64_t cache_room(const struct cache *c);
void cache_abandon(struct cache *c, const char *part);
/* The temporary file is whole, and has this checksum: it becomes contents, or gives way to those that are
 * there. 0 or -errno. */
int cache_keep(struct cache *c, const char *part, const unsigned char sha256[32], uint64_t size,
               int64_t now_ms, struct cached **ret);
/* These are the contents at `key` (base/file_key.h) now; the key's former ones lose it. */
struct cached_name *cache_name(struct cache *c, struct cached *e, struct str key,
                               const struct move_facts *facts, int64_t now_ms);
/* They are not what they should be, and nobody has them pinned. */
void cache_drop(struct cache *c, struct cached *e);
/* Evicts down to so many bytes, at most to the limit. */
void cache_trim(struct cache *c, uint64_t bytes);
uint64_t cache_bytes(const struct cache *c);

/* Something that somebody else keeps, which the server is to know like contents: an image, say. Gone with
 * size UINT64_MAX. */
void cache_other(struct cache *c, uint64_t id, uint64_t size);
/* What has come and gone since the last call, or all there is (`all`). Numbers, each once, with the size of
 * what is there and UINT64_MAX for what has gone. */
void cache_changes(struct cache *c, bool all, void (*fn)(void *arg, uint64_t id, uint64_t size), void *arg);
bool cache_changed(const struct cache *c);
