/* move_files: copies and moves files between a sandbox and the folders of the job's owner.
 *
 * Uses descriptors and paths only, so that the agent's loop and its worker threads may both call it. Names
 * inside the sandbox are resolved beneath it; only regular files and folders of regular files are read
 * there. Outside, nothing is read from or put into a folder that is hidden from jobs: a path that leads
 * there fails with -EACCES, and hidden parts of a copied folder are left out.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/system/fs.h"
#include "base/system/hidden.h"

/* Copies a file or a folder with its contents to `name` beneath the sandbox. contents: copies what is in the
 * folder instead of the folder itself. Adds the copied bytes to *bytes. pace (may be NULL) reports progress
 * and can cancel: -ECANCELED. Returns 0, or -errno with err. */
int move_in(const struct hidden *hidden, const char *from, int sandbox, const char *name, bool contents,
            mode_t extra_mode, struct fs_pace *pace, uint64_t *bytes, struct err *err);

/* Puts a file or folder of the sandbox at `to`, an absolute path, in one step: by rename on the same file
 * system, else by a copy that is written as `<to>.drover-<fence>-<inode>.tmp` (the inode of the file in the
 * sandbox, so that two jobs with outputs of the same name do not write into one file) and renamed. Missing
 * parent folders beneath `iwd` (may be NULL) are made. small_only: returns -EXDEV, with nothing done, if
 * more than MOVE_SMALL bytes would be copied. If `to` exists and is not a regular file (a device, a pipe),
 * it is written into; a link is followed. Returns 0, or -errno with err. */
#define MOVE_SMALL 65536
int move_out(const struct hidden *hidden, int sandbox, const char *name, const char *iwd, const char *to,
             uint32_t fence, bool small_only, struct fs_pace *pace, uint64_t *bytes, struct err *err);
