/* Scripts of tasks that are over, for people: DIR/kept/SERIAL-REQUEST.MEMBER.FENCE.STEP.sh, a second name of
 * the file in the task's folder, which goes. Serials are of one length and grow, so that the order of names
 * is that of time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "run/batch/private.h"

#define KEPT_MAX   1000
#define SCRIPT_MAX (4u << 20)

struct kept {
        int fd;
        char *names[KEPT_MAX]; /* a ring; the oldest is at `next`, once it is full */
        size_t next;
        uint64_t serial;
};

static void add(struct kept *k, char *name)
{
        char **at = &k->names[k->next];
        if (*at)
                unlinkat(k->fd, *at, 0);
        free(*at);
        *at = name;
        k->next = (k->next + 1) % KEPT_MAX;
}

static int is_script(const struct dirent *e)
{
        return str_ends(str_of(e->d_name), STR(".sh"));
}

void batch_kept_open(struct batch *b)
{
        struct kept *k = b->kept = mem_new(struct kept);
        struct dirent **found;
        k->serial = (uint64_t)clock_wall_ms() << 8;
        if (mkdirat(b->fd, "kept", 0700) < 0 && errno != EEXIST) {
                k->fd = -1;
                return;
        }
        k->fd = openat(b->fd, "kept", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int n = k->fd < 0 ? -1 : scandirat(k->fd, ".", &found, is_script, alphasort);
        for (int i = 0; i < n; i++) {
                add(k, mem_dupz(found[i]->d_name));
                free(found[i]);
        }
        if (n >= 0)
                free(found);
}

void batch_kept_close(struct batch *b)
{
        struct kept *k = b->kept;
        if (!k)
                return;
        for (size_t i = 0; i < KEPT_MAX; i++)
                free(k->names[i]);
        if (k->fd >= 0)
                close(k->fd);
        free(k);
        b->kept = NULL;
}

void batch_kept_add(struct batch *b, const struct task *t)
{
        struct kept *k = b->kept;
        BUF_CLEANUP struct buf path = {0}, name = {0};
        if (!k || k->fd < 0)
                return;
        buf_printf(&path, "%s/" BATCH_STEP ".%u.sh", t->box, t->id.step);
        buf_printf(&name, "%016llx-%llu.%u.%u.%u.sh", (unsigned long long)++k->serial,
                   (unsigned long long)t->id.request, t->id.member, t->id.fence, t->id.step);
        if (linkat(AT_FDCWD, buf_z(&path), k->fd, buf_z(&name), 0) == 0)
                add(k, buf_take(&name));
}

int batch_kept_read(const struct batch *b, struct run_id id, struct buf *out)
{
        const struct kept *k = b->kept;
        BUF_CLEANUP struct buf of = {0};
        buf_printf(&of, "-%llu.%u.", (unsigned long long)id.request, id.member);
        for (size_t i = 1; k && i <= KEPT_MAX; i++) { /* from the newest on */
                const char *name = k->names[(k->next + KEPT_MAX - i) % KEPT_MAX];
                if (name && str_starts(str_skip(str_of(name), 16), buf_view(&of)))
                        return fs_read_regular(k->fd, name, SCRIPT_MAX, out, NULL);
        }
        return -ENOENT;
}
