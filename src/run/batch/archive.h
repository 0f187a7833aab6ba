/* archive: the scripts of a queue's last thousand ended tasks, kept for people to read.
 *
 * Scripts are in DIR/kept/ as SERIAL-REQUEST.MEMBER.FENCE.STEP.sh, each a hard link to the file in the
 * task's folder, which is removed. Serials have a fixed length and grow, so the order of names is the order
 * of time.
 */
#pragma once
#include "run/task/run_id.h"

struct archive;
/* Dirfd: of DIR. An archive whose folder cannot be made keeps nothing. */
struct archive *archive_open(int dirfd);
void archive_close(struct archive *a);                                     /* NULL is fine */
void archive_add(struct archive *a, struct run_id id, const char *script); /* script: a path */
/* Appends the newest script of that job; fence and step are ignored. Returns 0, -ENOENT, or another -errno.
 */
int archive_read(const struct archive *a, struct run_id id, struct buf *out);
