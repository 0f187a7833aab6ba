/* spool: stores the input and output files of jobs by their content.
 *
 * An object is a file named by the SHA-256 of its bytes. It never changes, and is durable (file and
 * folders flushed) from the moment it exists. It is created from an upload: bytes in order, resumable at
 * its current size, with a running checksum. An upload has an id chosen by its caller (a uuid) and an
 * owner, and survives a restart. The caller must know who may read an object, what refers to it and whose
 * quota it counts against.
 *
 * FOLDER/objects/ab/cd/abcd…  FOLDER/uploads/<id>, <id>.owner. Everything is opened below FOLDER;
 * malformed ids and hashes are not found. Hashes are 64 lower-case hexadecimal digits.
 *
 * Thread-safe; calls may block on the disk. Of two simultaneous calls for one upload, one gets -EBUSY. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/system/uuid.h"

enum spool_error {
        SPOOL_NOT_FOUND = 1, /* no such object or upload */
        SPOOL_WRONG_OFFSET,  /* the offset is not the upload's size: continue at that size */
        SPOOL_WRONG_HASH,    /* the bytes do not have the announced hash: the upload was removed */
        SPOOL_FULL,          /* no space; the upload is unchanged */
        SPOOL_TOO_BIG,       /* over the limit of one object; the upload is unchanged */
};

#define SPOOL_HASH_TEXT 65

struct spool;
/* Opens the folder, and makes it (0700) if absent. object_max: maximum bytes of one object, 0 for no
 * limit. Returns 0 or -errno. */
int spool_open(const char *folder, uint64_t object_max, struct spool **ret, struct err *err);
/* Opens it to read and list objects only, beside the process that has its uploads: these are neither loaded
 * nor tidied. */
int spool_open_objects(const char *folder, struct spool **ret, struct err *err);
void spool_close(struct spool *s); /* keeps uploads; accepts NULL */

/* ---- uploads */
/* Begins an upload, or finds the existing one (SPOOL_NOT_FOUND if it belongs to another owner). *ret_size:
 * where to continue. Returns 0; -EINVAL when id is not a uuid or owner is empty or over 255 bytes;
 * SPOOL_FULL; or -errno. */
int spool_upload_begin(struct spool *s, const char *id, struct str owner, uint64_t *ret_size,
                       struct err *err);
/* Adds bytes at `offset`, which must be the upload's size. *ret_size is also set with SPOOL_WRONG_OFFSET.
 * Returns 0; SPOOL_NOT_FOUND, WRONG_OFFSET, FULL, TOO_BIG; -EBUSY; or -errno. */
int spool_upload_write(struct spool *s, const char *id, uint64_t offset, struct str bytes, uint64_t *ret_size,
                       struct err *err);
/* Appends the owner. Returns 0 or SPOOL_NOT_FOUND. */
int spool_upload_owner(struct spool *s, const char *id, struct buf *ret_owner);
/* Returns the bytes of all of an owner's uploads that have not become objects, and their number. */
uint64_t spool_upload_held(struct spool *s, struct str owner, size_t *ret_uploads);
int spool_upload_drop(struct spool *s, const char *id); /* returns 0, SPOOL_NOT_FOUND or -EBUSY */
/* Removes uploads to which nothing was added since the given time (Unix milliseconds). Returns their
 * number. */
size_t spool_upload_expire(struct spool *s, int64_t before_ms);

/* Makes objects of uploads. Many in one call share their flushes, so pass all that are ready. */
struct spool_finish {
        const char *id;
        const char *expect; /* the hash that the bytes must have; NULL: any */
        /* 0; SPOOL_NOT_FOUND, WRONG_HASH; -EBUSY; SPOOL_FULL or another -errno: the upload may be lost and
         * must be sent again */
        int result;
        char hash[SPOOL_HASH_TEXT]; /* set when the result is 0, like size */
        uint64_t size;
        struct err err;
};
void spool_finish(struct spool *s, struct spool_finish *f, size_t count);
/* The same for one upload. */
int spool_finish_one(struct spool *s, const char *id, const char *expect, char ret_hash[SPOOL_HASH_TEXT],
                     uint64_t *ret_size, struct err *err);

/* ---- objects */
/* Opens an object for reading. The descriptor belongs to the caller, and stays valid when the object is
 * removed. Returns 0; SPOOL_NOT_FOUND; or -errno. ret_size may be NULL. */
int spool_object_open(struct spool *s, struct str hash, int *ret_fd, uint64_t *ret_size);
/* Calls fn for every object, in order of the hash, until it returns nonzero (which is returned).
 * arrived_ms: when the last upload became this object. Returns 0 at the end, or -errno. */
typedef int spool_object_fn(void *arg, struct str hash, uint64_t size, int64_t arrived_ms);
int spool_object_list(struct spool *s, spool_object_fn *fn, void *arg, struct err *err);

/* Removes the objects that arrived before the given time (Unix milliseconds) and for which is_wanted
 * returns false. An upload that becomes one of them meanwhile keeps it. *ret_bytes (may be NULL): the
 * space freed. Returns 0 or -errno. */
typedef bool spool_wanted_fn(void *arg, struct str hash);
int spool_collect(struct spool *s, int64_t before_ms, spool_wanted_fn *is_wanted, void *arg,
                  uint64_t *ret_bytes, struct err *err);
