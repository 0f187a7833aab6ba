/* append: what a step at another server wrote, added to the end of a stream here, once.
 *
 * An agent may be killed in the middle of it, or after it and before that is noted; then it does it again. So
 * the stream's size before it is kept in a mark, a file beside it, until the step is forgotten.
 */
#pragma once

/* Adds the file `from` to the end of `to`, which is made if it is not there, and removes `from`. With a mark
 * of an earlier try, what stands in `to` since then is not added again as far as it is the same. Links are
 * not followed. 0 or -errno. */
int append_once(const char *from, const char *to, const char *mark);
