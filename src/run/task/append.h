/* append: appends the output of a step at another server to a local stream, exactly once.
 *
 * The agent may be killed during the append, or after it and before the result is recorded, and then appends
 * again. So the stream's size before the append is kept in a mark, a file beside it, until the step is
 * forgotten.
 */
#pragma once

/* Appends the file `from` to `to`, which is made if it is missing, and removes `from`. With a mark of an
 * earlier try, bytes that were appended since are skipped as far as they are the same. Symbolic links are
 * not followed. Returns 0 or -errno. */
int append_once(const char *from, const char *to, const char *mark);
