/* archive: scripts of tasks that are over, for people: the last thousand of a queue.
 *
 * In DIR/kept/ as SERIAL-REQUEST.MEMBER.FENCE.STEP.sh, a second name of the file in the task's folder, which
 * goes. Serials are of one length and grow, so that the order of names is that of time. */
#pragma once
#include "run/task/run_id.h"

struct archive;
struct archive *archive_open(int dirfd); /* of DIR. Without a folder it keeps nothing */
void archive_close(struct archive *a);   /* NULL is fine */
void archive_add(struct archive *a, struct run_id id, const char *script); /* its path */
/* The newest of that job, appended; fence and step are not looked at. 0, -ENOENT, or another -errno. */
int archive_read(const struct archive *a, struct run_id id, struct buf *out);
