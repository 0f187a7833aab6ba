/* /proc/self/fd gives the present path of an open file (proc(5)), and of the hidden folders, which are kept
 * open. */
#include "base/system/hidden.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

struct hidden {
        int *fds;
        size_t count;
};

struct hidden *hidden_new(const char *const *folders, size_t count)
{
        struct hidden *h = mem_new(struct hidden);

        h->fds = mem_array(NULL, count + 1, sizeof(*h->fds));
        for (size_t i = 0; i < count; i++) {
                int fd = open(folders[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

                if (fd >= 0 && hidden_check(h, fd) == 0) /* one in another needs no look of its own */
                        h->fds[h->count++] = fd;
                else if (fd >= 0)
                        close(fd);
        }
        return h;
}

void hidden_free(struct hidden *h)
{
        if (!h)
                return;
        for (size_t i = 0; i < h->count; i++)
                close(h->fds[i]);
        free(h->fds);
        free(h);
}

static int name_of(int fd, char room[PATH_MAX])
{
        char link[32];
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, room, PATH_MAX - 1);
        if (n < 0)
                return -errno;
        if (n == PATH_MAX - 1)
                return -ENAMETOOLONG;
        room[n] = 0;
        return 0;
}

static bool beneath(const char *path, const char *folder)
{
        size_t n = strcmp(folder, "/") ? strlen(folder) : 0;

        return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

int hidden_check(const struct hidden *h, int fd)
{
        char path[PATH_MAX], folder[PATH_MAX];
        int r = h && h->count ? name_of(fd, path) : 0;

        for (size_t i = 0; r == 0 && h && i < h->count; i++) {
                r = name_of(h->fds[i], folder);
                if (r == 0 && beneath(path, folder))
                        r = HIDDEN_INSIDE;
        }
        return r;
}

int hidden_open_parent(const struct hidden *h, const char *path, int *ret_fd, const char **ret_name)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        MEM_CLEANUP char *parent =
                slash && slash > path ? mem_dup(path, (size_t)(slash - path)) : mem_dupz("/");
        int fd, r;

        if (*path != '/' || !*name || !strcmp(name, ".") || !strcmp(name, ".."))
                return -EINVAL;
        fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = hidden_check(h, fd);
        if (r != 0) {
                close(fd);
                return r;
        }
        *ret_fd = fd;
        *ret_name = name;
        return 0;
}

int hidden_make_folder(const struct hidden *h, const char *path, mode_t mode)
{
        struct str plain = str_of(path);
        MEM_CLEANUP char *folder = NULL;
        const char *name;
        int parent, r;

        while (plain.n > 1 && str_ends(plain, STR("/")))
                plain.n--;
        folder = str_dupz(plain);
        r = hidden_open_parent(h, folder, &parent, &name);
        if (r != 0)
                return r;
        r = mkdirat(parent, name, mode) == 0 || errno == EEXIST ? 0 : -errno;
        close(parent);
        return r;
}

char *hidden_beneath(const struct hidden *h, int fd, size_t n)
{
        char above[PATH_MAX], folder[PATH_MAX];
        bool found = h && h->count && name_of(fd, above) == 0;

        for (size_t i = 0; found && i < h->count; i++)
                if (name_of(h->fds[i], folder) == 0 && beneath(folder, above) && strcmp(folder, above) != 0 &&
                    n-- == 0)
                        return mem_dupz(folder + (strcmp(above, "/") ? strlen(above) : 0) + 1);
        return NULL;
}
