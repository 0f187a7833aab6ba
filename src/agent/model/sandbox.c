#include "agent/model/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fs.h"

void sandbox_name(const struct attempt *at, char room[64])
{
        snprintf(room, 64, "%llu.%u.%u", (unsigned long long)at->request, at->member, at->fence);
}

/* A batch script, and what a container's engine is given, are the agent's. */
bool sandbox_is_shared(const struct attempt *at)
{
        return at->a->users_path && (!queue_is_local(at->q) || attempt_has_container(at));
}

int sandbox_make(struct attempt *at)
{
        char name[64];
        if (at->has_sandbox)
                return 0;
        if (at->a->users_path) { /* the shepherd does, for the user */
                at->has_sandbox = true;
                return 0;
        }
        sandbox_name(at, name);
        if (mkdirat(at->a->jobs, name, 0700) < 0) {
                if (errno != EEXIST)
                        return -errno;
                int r = fs_remove_tree(at->a->jobs, name); /* of an earlier life */
                if (r < 0 && r != -ENOENT)
                        return r;
                if (mkdirat(at->a->jobs, name, 0700) < 0)
                        return -errno;
        }
        at->has_sandbox = true;
        return 0;
}
