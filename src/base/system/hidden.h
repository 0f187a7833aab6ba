/* hidden: folders in which the agent opens no path that a user has named.
 *
 * Jobs cannot see an agent's own folders (agent/shepherd/containment.h), but the agent can. A file that it
 * opens for a job, by a path from the job's owner, is therefore checked here after it is opened: the
 * descriptor stays the same file, regardless of links in the path and of concurrent renames. A second mount
 * of such a folder is not detected.
 *
 * Calls are thread-safe after hidden_new. NULL hides nothing.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hidden;

enum hidden_error {
        HIDDEN_INSIDE = 1, /* the path leads into a hidden folder */
};

/* Takes `count` folders by path; the paths are resolved now, and a folder that does not exist is left out. */
struct hidden *hidden_new(const char *const *folders, size_t count);
void hidden_free(struct hidden *h);
/* Checks where the open file is: 0 (in no hidden folder), HIDDEN_INSIDE, or -errno. A hidden folder itself
 * counts as inside. */
int hidden_check(const struct hidden *h, int fd);
/* Opens the folder (O_PATH) that holds the last component of an absolute path. 0, with a descriptor that the
 * caller closes, and *ret_name pointing into `path`; HIDDEN_INSIDE; -EINVAL: the path names no file; or
 * -errno. */
int hidden_open_parent(const struct hidden *h, const char *path, int *ret_fd, const char **ret_name);
/* Makes a folder by its absolute path, which may end with a slash; the folders above it must exist. 0, also
 * if it exists; HIDDEN_INSIDE; -EINVAL: the path names no folder; or -errno. */
int hidden_make_folder(const struct hidden *h, const char *path, mode_t mode);
/* Returns the n-th hidden folder beneath an open folder, as a path relative to that, for free(); NULL: there
 * are no more. */
char *hidden_beneath(const struct hidden *h, int fd, size_t n);
