/* spool: files that jobs bring and leave, kept by what is in them.
 *
 * An object is a file named by the SHA-256 of its bytes, never changed, and durable (file and folders
 * flushed) from the moment it is in. It comes in as an upload: bytes in order, resumable at its size, with a
 * running checksum; an upload has an id of its caller's choice (a uuid) and an owner, and survives a restart.
 * Who may read an object, what refers to it and whose quota it counts against are the caller's to know.
 *
 * FOLDER/objects/ab/cd/abcd…  FOLDER/uploads/<id>, <id>.owner. Everything is opened beneath FOLDER; ids and
 * hashes that are not of their form are not found. Hashes are 64 lower-case hexadecimal digits.
 *
 * Thread-safe; calls may block on the disk. Two calls about one upload at the same time: one gets -EBUSY.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/system/uuid.h"

enum spool_error {
        SPOOL_NOT_FOUND = 1, /* no such object or upload */
        SPOOL_WRONG_OFFSET,  /* bytes not where the upload ends: go on at the size it has */
        SPOOL_WRONG_HASH,    /* the bytes are not those that were announced: the upload is gone */
        SPOOL_FULL,          /* no space; the upload is as it was before */
        SPOOL_TOO_BIG,       /* over the limit of one object; the upload is as it was before */
};

#define SPOOL_HASH_TEXT 65

struct spool;
/* Opens, and makes, the folder (0700). object_max: bytes of one object, 0 for no limit. 0 or -errno. */
int spool_open(const char *folder, uint64_t object_max, struct spool **ret, struct err *err);
void spool_close(struct spool *s); /* uploads stay; NULL is fine */

/* ---- coming in */
/* Begins an upload, or finds the one that is there (then with SPOOL_NOT_FOUND when it is another owner's).
 * *ret_size: where to go on. 0; -EINVAL when id is no uuid or owner is empty or over 255 bytes; SPOOL_FULL;
 * -errno. */
int spool_upload_begin(struct spool *s, const char *id, struct str owner, uint64_t *ret_size,
                       struct err *err);
/* Adds bytes at `offset`, which must be the upload's size. *ret_size is written also with SPOOL_WRONG_OFFSET.
 * 0; or SPOOL_NOT_FOUND, WRONG_OFFSET, FULL, TOO_BIG; -EBUSY; -errno. */
int spool_upload_write(struct spool *s, const char *id, uint64_t offset, struct str bytes, uint64_t *ret_size,
                       struct err *err);
/* The owner, appended. 0 or SPOOL_NOT_FOUND. */
int spool_upload_owner(struct spool *s, const char *id, struct buf *ret_owner);
/* Bytes of all of an owner's uploads that have not become objects, and how many they are. */
uint64_t spool_upload_held(struct spool *s, struct str owner, size_t *ret_uploads);
int spool_upload_drop(struct spool *s, const char *id); /* 0, SPOOL_NOT_FOUND or -EBUSY */
/* Drops those to which nothing was added since then (Unix milliseconds). How many. */
size_t spool_upload_expire(struct spool *s, int64_t before_ms);

/* Makes objects of uploads: many at once share their flushes, so bring all that wait. */
struct spool_finish {
        const char *id;
        const char *expect; /* hash that the bytes must have; NULL: any */
        /* 0; SPOOL_NOT_FOUND, WRONG_HASH; -EBUSY; SPOOL_FULL, other -errno: it may be gone, and is sent anew
         */
        int result;
        char hash[SPOOL_HASH_TEXT]; /* written when the result is 0, as is size */
        uint64_t size;
        struct err err;
};
void spool_finish(struct spool *s, struct spool_finish *f, size_t count);
/* The same for one. */
int spool_finish_one(struct spool *s, const char *id, const char *expect, char ret_hash[SPOOL_HASH_TEXT],
                     uint64_t *ret_size, struct err *err);

/* ---- objects */
/* For reading. The descriptor is the caller's, and stays good when the object is collected. 0;
 * SPOOL_NOT_FOUND; -errno. ret_size may be NULL. */
int spool_object_open(struct spool *s, struct str hash, int *ret_fd, uint64_t *ret_size);
/* Every object, in order of the hash, until fn returns nonzero (which is returned). arrived_ms: when an
 * upload last ended as this object. 0 at the end; -errno. */
typedef int spool_object_fn(void *arg, struct str hash, uint64_t size, int64_t arrived_ms);
int spool_object_list(struct spool *s, spool_object_fn *fn, void *arg, struct err *err);

/* Removes the objects that arrived before then (Unix milliseconds) and that is_wanted does not want. An
 * upload that ends as one of them meanwhile keeps it. *ret_bytes (may be NULL): how much space that was. 0 or
 * -errno. */
typedef bool spool_wanted_fn(void *arg, struct str hash);
int spool_collect(struct spool *s, int64_t before_ms, spool_wanted_fn *is_wanted, void *arg,
                  uint64_t *ret_bytes, struct err *err);
