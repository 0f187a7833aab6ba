#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"
#include "run/sandbox_names.h"

#define CREDENTIALS_MAX 1024 /* files in the folder: more were put there by the user */

static bool is_roots(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 && !(st.st_mode & 022);
}

int sandbox_open(struct shepherd *s)
{
        s->jobs = -1;
        if (!s->users_path || s->uid != 0)
                return 0;
        if (!is_roots(s->dir))
                return -EPERM;
        s->jobs = openat(s->dir, "jobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (s->jobs < 0)
                return s->agent_uid == s->uid ? 0 : -errno;
        return is_roots(s->jobs) ? 0 : -EPERM;
}

char *sandbox_name_of(const char *path)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

        for (const char *p = name; *p; p++)
                if (*p <= ' ' || *p > '~')
                        return NULL;
        return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 ? must(strdup(name)) : NULL;
}

/* The agent's group may go through it, to what all may read; and with `share` make and remove files, as the
 * folder's owner may let anybody. */
static int open_to_agent(const struct shepherd *s, int fd, const struct user *user, bool share)
{
        struct stat jobs;

        if (fstat(s->jobs, &jobs) < 0 || fchown(fd, user->uid, jobs.st_gid) < 0 ||
            fchmod(fd, share ? 0730 : 0710) < 0)
                return errno;
        return 0;
}

int sandbox_make(struct shepherd *s, const char *path, const struct user *user, bool share)
{
        struct stat st;

        if (s->jobs < 0)
                return EPERM;
        char *name = sandbox_name_of(path);
        bool made = name && mkdirat(s->jobs, name, 0700) == 0;
        int error = !name ? EINVAL : made || errno == EEXIST ? 0 : errno;
        int fd = error ? -1 : openat(s->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (!error && (fd < 0 || fstat(fd, &st) < 0))
                error = errno;
        if (!error && !made && st.st_uid != user->uid)
                error = EPERM; /* belongs to somebody else */
        if (!error && (made || share))
                error = open_to_agent(s, fd, user, share);
        if (error && made)
                unlinkat(s->jobs, name, AT_REMOVEDIR);
        if (fd >= 0)
                close(fd);
        free(name);
        return error;
}

void sandbox_remove(struct shepherd *s, const char *name)
{
        if (s->jobs >= 0 && unlinkat(s->jobs, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                complain("msg=\"cannot remove a sandbox\" sandbox=%s error=\"%s\"", name, strerror(errno));
}

/* Removes the credentials, because the agent may be gone for long or for ever. The contents of the folder
 * are under the user's control: no link is followed, and nothing is touched that the user could not remove.
 */
void sandbox_drop_credentials(const struct shepherd *s, const char *path)
{
        char *name = sandbox_name_of(path);
        const struct dirent *e;
        int box = s->jobs >= 0 || s->agent_uid != s->uid
                          ? openat(s->jobs, name ? name : "", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                          : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int fd = box < 0 ? -1
                         : openat(box, SANDBOX_CREDENTIALS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        for (unsigned i = 0; dir && i < CREDENTIALS_MAX && (e = readdir(dir)); i++)
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        unlinkat(fd, e->d_name, 0);
        if (dir)
                unlinkat(box, SANDBOX_CREDENTIALS, AT_REMOVEDIR);
        if (dir)
                closedir(dir);
        else if (fd >= 0)
                close(fd);
        if (box >= 0)
                close(box);
        free(name);
}
