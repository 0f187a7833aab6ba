/* cgroup_mount: where our own control group is, from what the kernel says of mounts and of us.
 *
 * Version 1 has a hierarchy for one or more controllers, version 2 one for all; each may be mounted anywhere,
 * and a container sees only a part of it. Sources: proc(5) for both files, cgroups(7).
 */
#pragma once
#include "base/str.h"

/* mountinfo, self: the texts of /proc/self/mountinfo and /proc/self/cgroup. controller: "memory" and the like
 * of version 1, "" is version 2. The path of our group in that hierarchy, for free(); NULL: it is not
 * mounted, or we are in no group of it. A group that is outside what is mounted here is taken to be the mount
 * itself. */
char *cgroup_mount_own(struct str mountinfo, struct str self, const char *controller);
