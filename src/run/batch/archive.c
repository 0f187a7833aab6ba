#include "run/batch/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"

#define ARCHIVE_MAX 1000
#define SCRIPT_MAX  (4u << 20)

struct archive {
        int fd;
        char *names[ARCHIVE_MAX]; /* a ring; once it is full, the oldest is at `next` */
        size_t next;
        uint64_t serial;
};

static void ring_add(struct archive *k, char *name)
{
        char **at = &k->names[k->next];

        if (*at)
                unlinkat(k->fd, *at, 0);
        free(*at);
        *at = name;
        k->next = (k->next + 1) % ARCHIVE_MAX;
}

static int is_script(const struct dirent *e)
{
        return str_ends(str_of(e->d_name), STR(".sh"));
}

struct archive *archive_open(int dirfd)
{
        struct archive *k = mem_new(struct archive);
        struct dirent **found;

        k->serial = (uint64_t)clock_wall_ms() << 8;
        if (mkdirat(dirfd, "kept", 0700) < 0 && errno != EEXIST) {
                k->fd = -1;
                return k;
        }
        k->fd = openat(dirfd, "kept", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int n = k->fd < 0 ? -1 : scandirat(k->fd, ".", &found, is_script, alphasort);
        for (int i = 0; i < n; i++) {
                ring_add(k, mem_dupz(found[i]->d_name));
                free(found[i]);
        }
        if (n >= 0)
                free(found);
        return k;
}

void archive_close(struct archive *k)
{
        if (!k)
                return;
        for (size_t i = 0; i < ARCHIVE_MAX; i++)
                free(k->names[i]);
        if (k->fd >= 0)
                close(k->fd);
        free(k);
}

void archive_add(struct archive *k, struct run_id id, const char *script)
{
        BUF_CLEANUP struct buf name = {0};

        if (!k || k->fd < 0)
                return;
        buf_printf(&name, "%016llx-%llu.%u.%u.%u.sh", (unsigned long long)++k->serial,
                   (unsigned long long)id.request, id.member, id.fence, id.step);
        if (linkat(AT_FDCWD, script, k->fd, buf_z(&name), 0) == 0)
                ring_add(k, buf_take(&name));
}

int archive_read(const struct archive *k, struct run_id id, struct buf *out)
{
        BUF_CLEANUP struct buf of = {0};

        buf_printf(&of, "-%llu.%u.", (unsigned long long)id.request, id.member);
        for (size_t i = 1; k && i <= ARCHIVE_MAX; i++) { /* newest first */
                const char *name = k->names[(k->next + ARCHIVE_MAX - i) % ARCHIVE_MAX];

                if (name && str_starts(str_skip(str_of(name), 16), buf_view(&of)))
                        return fs_read_regular(k->fd, name, SCRIPT_MAX, out, NULL);
        }
        return -ENOENT;
}
