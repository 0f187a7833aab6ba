/* move_files: files between a sandbox and the folders of its job's owner.
 *
 * Works with descriptors and paths only, so that the agent's loop and its worker thread may both use it.
 * Inside the sandbox everything is resolved beneath it; what is read there must be a regular file (or a
 * folder of such). Outside of it nothing is read from, or put into, a folder that is hidden from jobs: a path
 * that leads there is -EACCES, and what is there of a folder that is copied is left out.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/hidden.h"

/* Copies a file, or a folder with all that is in it, to `name` beneath the sandbox. `contents`: of a folder,
 * what is in it. Adds to *bytes. `pace` (may be NULL) tells how it goes and ends it, then -ECANCELED. 0, or
 * -errno with err. */
int move_in(const struct hidden *hidden, const char *from, int sandbox, const char *name, bool contents,
            mode_t extra_mode, struct fs_pace *pace, uint64_t *bytes, struct err *err);

/* Puts a file or folder of the sandbox at `to`, an absolute path, in one step: by rename where both are on
 * one filesystem, else as a copy under `<to>.drover-<fence>-<inode>.tmp`, of the file in
 * the sandbox, that is renamed: two jobs with outputs of one name do not write into one another's. Folders
 * of `to` that are missing beneath the folder `iwd` (may be NULL) are made.
 * small_only: -EXDEV, with nothing done, when that would copy more than MOVE_SMALL bytes. What stands at `to`
 * and is no regular file (a device, a pipe) is written into; a link is followed. 0, or -errno with err. */
#define MOVE_SMALL 65536
int move_out(const struct hidden *hidden, int sandbox, const char *name, const char *iwd, const char *to,
             uint32_t fence, bool small_only, struct fs_pace *pace, uint64_t *bytes, struct err *err);
