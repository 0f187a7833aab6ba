/* cgroup_mount: the path of our own control group, from the kernel's lists of mounts and of our groups.
 *
 * Version 1 has a hierarchy for one or more controllers, version 2 one for all; each may be mounted anywhere,
 * and a container sees only a part of it. Sources: proc(5) for both files, cgroups(7).
 */
#pragma once
#include "base/str.h"

/* Returns the path of our group in a controller's hierarchy, for free(); NULL: the hierarchy is not mounted,
 * or we are in no group of it. mountinfo and self are the texts of /proc/self/mountinfo and
 * /proc/self/cgroup; controller is the name of a version 1 controller ("memory"), or "" for version 2. A
 * group outside the mounted part is taken to be the mount itself. */
char *cgroup_mount_own(struct str mountinfo, struct str self, const char *controller);
