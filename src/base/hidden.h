/* hidden: folders in which nothing is opened that a user has named.
 *
 * Jobs do not see an agent's own folders (agent/shepherd/containment.h). The agent itself does, so what it
 * opens for a job by a path that the job's owner wrote is checked here, after it is opened: whatever links
 * the path goes through, and whoever renames folders meanwhile, the descriptor is of one file. A mount of
 * such a folder at a second place is not seen.
 *
 * Any thread may ask once it is made. NULL hides nothing.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct hidden;

enum hidden_error {
        HIDDEN_INSIDE = 1, /* the path leads into a hidden folder */
};

/* count folders by their paths, which are followed now; one that is not there is left out. */
struct hidden *hidden_new(const char *const *folders, size_t count);
void hidden_free(struct hidden *h);
/* Looks at the file that the descriptor has open: 0, HIDDEN_INSIDE, or -errno. A hidden folder itself is
 * inside. */
int hidden_check(const struct hidden *h, int fd);
/* The folder that an absolute path's last component is in, opened (O_PATH): 0 with a descriptor of the
 * caller's and the component, which points into `path`; HIDDEN_INSIDE; -EINVAL: it names no file; or -errno.
 */
int hidden_open_parent(const struct hidden *h, const char *path, int *ret_fd, const char **ret_name);
/* The n-th folder that is beneath this path, as it is called now, to be freed; NULL: there are no more, or
 * the path is not there. */
char *hidden_beneath(const struct hidden *h, const char *path, size_t n);
