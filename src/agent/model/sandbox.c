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

#include "base/mem.h"
#include "base/system/fs.h"

#define EMPTY_MAX  64
#define FOLDER_MAX 4096 /* bytes of a folder: one that has had many files stays large */

void sandbox_name(const struct attempt *at, char room[64])
{
        snprintf(room, 64, "%llu.%u.%u", (unsigned long long)at->request, at->member, at->fence);
}

int sandbox_open(const struct attempt *at)
{
        char name[64];

        sandbox_name(at, name);
        return openat(at->a->jobs, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int sandbox_open_file(const struct attempt *at, const char *name)
{
        struct stat st;
        int dir = sandbox_open(at);

        if (dir < 0)
                return -1;
        uid_t user =
                fstat(dir, &st) == 0 ? st.st_uid : 0; /* with `users` the shepherd made it for that user */
        int fd = fs_open_beneath(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
        close(dir);
        if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != user)) {
                close(fd);
                return -1;
        }
        return fd;
}

/* A sandbox is shared if the agent writes files into it: a batch script, a container engine's files, the
 * socket for calls, the list of a parallel job's nodes. */
bool sandbox_is_shared(const struct attempt *at)
{
        const struct job_template *m = at->t->m;

        return at->a->users_path &&
               (!queue_is_local(at->q) || attempt_has_container(at) || m->chirps || m->launches);
}

/* ---- empty ones */

static const char *const stream_names[] = {".drover_out.0", ".drover_out.1"};

static bool has_inputs(const struct attempt *at)
{
        const struct job_template *m = at->t->m;

        return m->spooled_count || m->input_file_count || at->checkpoint.restore_count;
}

static bool empty_are_of(const struct agent *a, const char *owner)
{
        return a->empty_owner && strcmp(a->empty_owner, owner) == 0;
}

static bool take_empty(const struct attempt *at, const char *name)
{
        struct agent *a = at->a;
        char empty[32];

        if (!a->empty_sandboxes || !empty_are_of(a, at->t->m->owner) || !queue_is_local(at->q) ||
            attempt_has_container(at) || has_inputs(at))
                return false;
        snprintf(empty, sizeof(empty), SANDBOX_EMPTY, a->empty_sandboxes - 1);
        if (renameat(a->jobs, empty, a->jobs, name) == 0) {
                a->empty_sandboxes--;
                return true;
        }
        if (errno == ENOENT)
                a->empty_sandboxes--; /* the folder was removed by somebody */
        return false;
}

/* File attributes that are set only on request. */
#define GIVEN                                                                                                \
        (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_COMPRESSED | STATX_ATTR_NODUMP |              \
         STATX_ATTR_ENCRYPTED | STATX_ATTR_VERITY)

/* Returns whether a list of extended attributes has some that a job can set: its own texts, and access
 * lists. Security labels are set by the machine. */
static bool has_given(const char *names, ssize_t n)
{
        if (n < 0)
                return errno != EOPNOTSUPP; /* a file system without extended attributes */
        for (const char *p = names; p < names + n; p += strlen(p) + 1)
                if (strncmp(p, "security.", strlen("security.")) != 0)
                        return true;
        return false;
}

/* Returns whether the stream file is unused: empty, and without a change that the next attempt could notice.
 */
static bool is_new_stream(int dir, const char *name, uid_t user)
{
        struct statx st;
        char path[64], given[1024];

        snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
        return statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) == 0 && S_ISREG(st.stx_mode) &&
               st.stx_size == 0 && st.stx_blocks == 0 && st.stx_nlink == 1 && st.stx_uid == user &&
               (st.stx_mode & 07777 & ~0644u) == 0 && (st.stx_mode & 0600) == 0600 &&
               !(st.stx_attributes & GIVEN) && !has_given(given, llistxattr(path, given, sizeof(given)));
}

/* Returns whether the folder has nothing but unused stream files. */
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
        char given[1024];

        return statx(dir, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) == 0 && st.stx_uid == geteuid() &&
               (st.stx_mode & 07777) == 0700 && st.stx_size <= FOLDER_MAX && !(st.stx_attributes & GIVEN) &&
               !has_given(given, flistxattr(dir, given, sizeof(given))) && has_streams_only(dir, st.stx_uid);
}

/* Reserves the empty sandboxes for an owner, and removes those of the former one: a process may have passed
 * the open folder to another process of its owner that goes on. */
static void empty_become(struct agent *a, const char *owner)
{
        char empty[32];

        if (empty_are_of(a, owner))
                return;
        while (a->empty_sandboxes) {
                snprintf(empty, sizeof(empty), SANDBOX_EMPTY, --a->empty_sandboxes);
                fs_remove_tree(a->jobs, empty);
        }
        free(a->empty_owner);
        a->empty_owner = mem_dupz(owner);
}

bool sandbox_may_recycle(const struct attempt *at)
{
        const struct agent *a = at->a;

        return at->all_ended && !a->users_path && queue_is_local(at->q) && !attempt_has_container(at) &&
               at->t->m->step_count == 1 &&
               (a->empty_sandboxes < EMPTY_MAX || !empty_are_of(a, at->t->m->owner));
}

/* The empty one with the next number. */
static bool put_empty(struct agent *a, const char *name, const char *owner)
{
        char empty[32];

        empty_become(a, owner);
        snprintf(empty, sizeof(empty), SANDBOX_EMPTY, a->empty_sandboxes);
        if (renameat(a->jobs, name, a->jobs, empty) < 0)
                return false;
        a->empty_sandboxes++;
        return true;
}

bool sandbox_recycle(struct attempt *at)
{
        struct agent *a = at->a;
        char name[64];

        if (!at->recycles)
                return false;
        at->recycles = false;
        sandbox_name(at, name);
        int dir = openat(a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool done =
                dir >= 0 && sandbox_may_recycle(at) && is_as_made(dir) && put_empty(a, name, at->t->m->owner);
        for (size_t i = 0; i < 2 && !done && dir >= 0; i++)
                unlinkat(dir, stream_names[i], 0);
        if (dir >= 0)
                close(dir);
        if (done)
                at->has_sandbox = false;
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
                int r = fs_remove_tree(at->a->jobs, name); /* left by an earlier agent */
                if (r < 0 && r != -ENOENT)
                        return r;
                if (mkdirat(at->a->jobs, name, 0700) < 0)
                        return -errno;
        }
        at->has_sandbox = true;
        return 0;
}
