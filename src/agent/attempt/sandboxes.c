/* Removes sandboxes of attempts that are over, and sandboxes of no known attempt. */
#include "agent/attempt/sandboxes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/environment/environments.h"
#include "agent/model/sandbox.h"
#include "agent/transfer/stage.h"
#include "base/system/fs.h"
#include "base/system/log.h"

void sandbox_remove(struct attempt *at)
{
        char name[64];

        if (!at->has_sandbox && !(at->a->users_path && at->adopted))
                return;
        sandbox_name(at, name);
        if (at->a->users_path) {
                at->has_sandbox = false;
                if (faccessat(at->a->jobs, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                        stage_remove(at->a, name, at->request, at->member, at->fence);
                return;
        }
        if (sandbox_recycle(at))
                return;
        int r = fs_remove_tree(at->a->jobs, name);
        if (r < 0 && r != -ENOENT)
                log_warn("msg=\"cannot remove a sandbox\" sandbox=%s error=\"%s\"", name, strerror(-r));
        at->has_sandbox = false;
}

/* Removes sandboxes only when the results are recorded: an agent restarted before that delivers the outputs
 * again. */
void sandbox_remove_left(struct agent *a)
{
        if (!a->sandboxes_wait)
                return;
        a->sandboxes_wait = false;
        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_DONE]; at; at = at->next)
                        if (at->leaves_sandbox) {
                                at->leaves_sandbox = false;
                                sandbox_remove(at);
                        }
}

void sandbox_sweep(struct agent *a)
{
        int fd = openat(a->jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;

        while (dir && (e = readdir(dir))) {
                unsigned long long request = 0;
                unsigned member = 0, fence = 0, empty = 0;

                if (sscanf(e->d_name, SANDBOX_EMPTY, &empty) == 1 && empty >= a->empty_sandboxes &&
                    !a->users_path)
                        fs_remove_tree(a->jobs, e->d_name); /* left by an earlier agent */
                if (e->d_name[0] == '.' ||
                    str_starts(str_of(e->d_name),
                               STR("batch.")) || /* folders of users, see run/batch/submit_user.c */
                    /* folders of users, see run/drover/user.c */
                    str_starts(str_of(e->d_name), STR("hop.")) ||
                    str_starts(str_of(e->d_name), STR(SANDBOX_OF_ENGINE)) ||
                    environments_folder(a, e->d_name))
                        continue;
                if (sscanf(e->d_name, "%llu.%u.%u", &request, &member, &fence) == 3) {
                        const struct attempt *at = agent_find(a, request, member, fence);

                        if (at && at->state != ATTEMPT_DONE)
                                continue;
                }
                if (a->users_path)
                        stage_remove(a, e->d_name, request, member, fence);
                else
                        fs_remove_tree(a->jobs, e->d_name);
        }
        if (dir)
                closedir(dir);
}
