/* fs: small things done with files, safely.
 *
 * Calls that take a directory descriptor and a relative path resolve it beneath that directory with
 * openat2(2):
 * ".." and absolute links that would leave it, and magic links, are refused (-EXDEV, -ELOOP). `dirfd` may be
 * AT_FDCWD only where a call says so. All descriptors are close-on-exec. Failures are -errno; err, where
 * there is one, names the path.
 */
#pragma once
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* openat2 with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS. A descriptor, or -errno. */
int fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode);
/* The directory that holds `path` beneath dirfd; *ret_name points at the last component in `path` (not "",
 * "." or
 * ".."). A descriptor, or -errno. */
int fs_open_parent(int dirfd, const char *path, const char **ret_name);

int fs_mkdirs(const char *path, mode_t mode);                    /* as mkdir -p; 0 also when it is there */
int fs_mkdirs_beneath(int dirfd, const char *path, mode_t mode); /* the same beneath dirfd */

/* The whole of a file, appended to out; more than max bytes is -EFBIG. dirfd may be AT_FDCWD. */
int fs_read(int dirfd, const char *path, size_t max, struct buf *out, struct err *err);
/* The same of what may be anything, in a directory that is somebody else's: a link is not followed (-ELOOP),
 * and what is no regular file is -EINVAL, without waiting for its other end. */
int fs_read_regular(int dirfd, const char *path, size_t max, struct buf *out, struct err *err);
/* As fs_read, of what holds a secret: a regular file that others than its owner may use is -EPERM,
 * but that a group may read one of root's. Pipes and terminals have no such mode, and are read. */
int fs_read_secret(int dirfd, const char *path, size_t max, struct buf *out, struct err *err);
/* A file is made or replaced in one step: written under a temporary name beside it, renamed. sync: flushed to
 * disk, file and directory. dirfd may be AT_FDCWD. */
int fs_write(int dirfd, const char *path, struct str bytes, mode_t mode, bool sync, struct err *err);
/* Removes the files, not the folders, of one directory whose names is_left() says yes to. How many. */
size_t fs_sweep(int dirfd, bool (*is_left)(struct str name));
/* Has a name such as a killed fs_write leaves: NAME.01234567.tmp. */
bool fs_is_left(struct str name);
int fs_write_all(int fd, const void *p, size_t n); /* all n bytes; 0 or -errno */
/* Does the file system of an open file have room for so many bytes more, and for others after that? A
 * fiftieth of it, at most 256 MiB, is left to these. For what comes from far and says its size itself, or
 * none. True when nobody can say. */
bool fs_has_room(int fd, uint64_t bytes);

/* Copies a file's bytes from one descriptor's position to the other's: shared blocks where the filesystem
 * can, else in the kernel, else by hand. 0 or -errno; *ret_bytes (may be NULL) counts them. */
int fs_copy(int from, int to, uint64_t *ret_bytes);
/* Long work on files in one thread, as others see it. All is set to zero before it begins. */
struct fs_pace {
        atomic_bool cancelled;       /* set by anybody: the work ends with -ECANCELED at its next step */
        atomic_uint_fast64_t steps;  /* that were done: does not change while there is no progress */
        atomic_uint_fast64_t *shown; /* the same number in memory that another process sees; NULL: nowhere */
};
/* One step more. 0, or -ECANCELED. `pace` may be NULL. */
int fs_pace_step(struct fs_pace *pace);
/* fs_copy in steps of some MiB. Holes of a regular file are not read, and stay holes in a new file.
 * -ECANCELED leaves a part of the copy. */
int fs_copy_paced(int from, int to, struct fs_pace *pace, uint64_t *ret_bytes);

/* Removes what `name` (one component) is in dirfd, a directory with all that is in it. Follows no links, does
 * not cross into what is mounted there, and stays in the tree whatever is moved about meanwhile. -ENOENT when
 * there was nothing. */
int fs_remove_tree(int dirfd, const char *name);
/* Bytes of disk that a tree uses, at most `files_max` entries looked at (0: no limit). */
uint64_t fs_tree_bytes(int dirfd, const char *name, uint64_t files_max);

/* Which paths mean the same here: "<boot id>:<inode of the mount namespace>". */
void fs_domain(char *room, size_t size);
int fs_boot_id(char *room, size_t size); /* 0 or -errno */
