#include "agent/model/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fs.h"

#define EMPTY_MAX  64
#define FOLDER_MAX 4096 /* bytes: one that has had many files stays large */

void sandbox_name(const struct attempt *at, char room[64])
{
        snprintf(room, 64, "%llu.%u.%u", (unsigned long long)at->request, at->member, at->fence);
}

/* A batch script, and what a container's engine is given, are the agent's. */
bool sandbox_is_shared(const struct attempt *at)
{
        return at->a->users_path && (!queue_is_local(at->q) || attempt_has_container(at));
}

/* ---- empty ones */

static const char *const stream_names[] = {".drover_out.0", ".drover_out.1"};

static bool has_inputs(const struct attempt *at)
{
        const struct job_template *m = at->t->m;
        return m->spooled_count || m->input_file_count || at->checkpoint.restore_count;
}

static bool take_empty(const struct attempt *at, const char *name)
{
        struct agent *a = at->a;
        char empty[32];
        if (!a->empty_sandboxes || !queue_is_local(at->q) || attempt_has_container(at) || has_inputs(at))
                return false;
        snprintf(empty, sizeof(empty), SANDBOX_EMPTY, a->empty_sandboxes - 1);
        if (renameat(a->jobs, empty, a->jobs, name) == 0) {
                a->empty_sandboxes--;
                return true;
        }
        if (errno == ENOENT)
                a->empty_sandboxes--; /* somebody has removed it */
        return false;
}

/* Nothing was written to the file, and nothing done to it that would tell in the next attempt. */
static bool is_new_stream(int dir, const char *name, uid_t user)
{
        struct statx st;
        return statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) == 0 && S_ISREG(st.stx_mode) &&
               st.stx_size == 0 && st.stx_blocks == 0 && st.stx_nlink == 1 && st.stx_uid == user &&
               (st.stx_mode & 07777 & ~0644u) == 0 && (st.stx_mode & 0600) == 0600 &&
               !(st.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND));
}

/* Whether it has nothing but the files of streams. */
static bool has_streams_only(int dir, uid_t user)
{
        _Alignas(struct dirent64) char room[2048];
        ssize_t n;
        while ((n = getdents64(dir, room, sizeof(room))) > 0)
                for (char *p = room; p < room + n; p += ((struct dirent64 *)p)->d_reclen) {
                        const char *name = ((struct dirent64 *)p)->d_name;
                        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
                            ((strcmp(name, stream_names[0]) != 0 && strcmp(name, stream_names[1]) != 0) ||
                             !is_new_stream(dir, name, user)))
                                return false;
                }
        return n == 0;
}

static bool is_as_made(int dir)
{
        struct statx st;
        return statx(dir, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) == 0 && st.stx_uid == geteuid() &&
               (st.stx_mode & 07777) == 0700 && st.stx_size <= FOLDER_MAX &&
               !(st.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) &&
               fgetxattr(dir, "system.posix_acl_default", NULL, 0) < 0 && has_streams_only(dir, st.stx_uid);
}

bool sandbox_may_recycle(const struct attempt *at)
{
        return at->all_ended && !at->a->users_path && queue_is_local(at->q) && !attempt_has_container(at) &&
               at->t->m->step_count == 1 && at->a->empty_sandboxes < EMPTY_MAX;
}

bool sandbox_recycle(struct attempt *at)
{
        struct agent *a = at->a;
        char name[64], empty[32];
        if (!at->recycles)
                return false;
        at->recycles = false;
        sandbox_name(at, name);
        snprintf(empty, sizeof(empty), SANDBOX_EMPTY, a->empty_sandboxes);
        int dir = openat(a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool done = dir >= 0 && sandbox_may_recycle(at) && is_as_made(dir) &&
                    renameat(a->jobs, name, a->jobs, empty) == 0;
        for (size_t i = 0; i < 2 && !done && dir >= 0; i++)
                unlinkat(dir, stream_names[i], 0);
        if (dir >= 0)
                close(dir);
        if (done) {
                at->has_sandbox = false;
                a->empty_sandboxes++;
        }
        return done;
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
        if (take_empty(at, name)) {
                at->has_sandbox = true;
                return 0;
        }
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
