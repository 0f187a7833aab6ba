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

/* Appends a whole file to out. -EFBIG: the file has more than max bytes. dirfd may be AT_FDCWD. */
int fs_read(int dirfd, const char *path, size_t max, struct buf *out, struct err *err);
/* fs_read for a path in a directory that somebody else controls: a symbolic link is not followed (-ELOOP),
 * and anything but a regular file is -EINVAL, without waiting for a pipe's other end. */
int fs_read_regular(int dirfd, const char *path, size_t max, struct buf *out, struct err *err);
/* fs_read_regular that also gives the file's owner; ret_owner may be NULL. */
int fs_read_regular_of(int dirfd, const char *path, size_t max, struct buf *out, uid_t *ret_owner,
                       struct err *err);
/* fs_read for a secret: -EPERM for a regular file that users other than its owner may access, except that
 * a group may read a file of root's. Pipes and terminals are read without that check. */
int fs_read_secret(int dirfd, const char *path, size_t max, struct buf *out, struct err *err);
/* Makes or replaces a file atomically: writes a temporary file beside it and renames that. sync: file and
 * directory are flushed to disk. dirfd may be AT_FDCWD. */
int fs_write(int dirfd, const char *path, struct str bytes, mode_t mode, bool sync, struct err *err);
/* Removes the files, not the folders, of one directory for whose names is_left returns true. Returns their
 * number. */
size_t fs_sweep(int dirfd, bool (*is_left)(struct str name));
/* Returns whether the name is that of a temporary file that a killed fs_write leaves: NAME.01234567.tmp. */
bool fs_is_left(struct str name);
int fs_write_all(int fd, const void *p, size_t n); /* all n bytes; 0 or -errno */
/* Returns whether the file system of an open file has room for `bytes` more and a reserve for others: a
 * fiftieth of its size, at most 256 MiB. Meant for data from a remote sender, whose stated size is not
 * trusted. True if the free space is not known. */
bool fs_has_room(int fd, uint64_t bytes);

/* Copies a file's bytes from one descriptor's position to the other's: shared blocks where the filesystem
 * can, else in the kernel, else by hand. 0 or -errno; *ret_bytes (may be NULL) counts them. */
int fs_copy(int from, int to, uint64_t *ret_bytes);
/* Progress and cancellation of long work on files in one thread. All zero before the work begins. */
struct fs_pace {
        atomic_bool cancelled;       /* set by anybody: the work ends with -ECANCELED at its next step */
        atomic_uint_fast64_t steps;  /* steps done so far */
        atomic_uint_fast64_t *shown; /* the same number, in memory shared with another process; NULL: none */
};
/* Counts one step. 0, or -ECANCELED. `pace` may be NULL. */
int fs_pace_step(struct fs_pace *pace);
/* fs_copy in steps of some MiB. Holes of a regular file are not read, and stay holes in a new file.
 * -ECANCELED leaves a part of the copy. */
int fs_copy_paced(int from, int to, struct fs_pace *pace, uint64_t *ret_bytes);

/* Removes the entry `name` (one component) of dirfd, a directory with all its contents. Follows no links,
 * does not cross mount points, and stays in the tree even if parts of it are moved meanwhile. -ENOENT: no
 * such entry. */
int fs_remove_tree(int dirfd, const char *name);
/* Returns the bytes of disk that a tree uses, counting at most `files_max` entries (0: no limit). */
uint64_t fs_tree_bytes(int dirfd, const char *name, uint64_t files_max);

/* Writes an identifier that is equal for processes to which paths mean the same: "<boot id>:<inode of the
 * mount namespace>". */
void fs_domain(char *room, size_t size);
int fs_boot_id(char *room, size_t size); /* 0 or -errno */
