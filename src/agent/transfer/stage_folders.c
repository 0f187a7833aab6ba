/* Expands outputs that are folders, if files are sent one by one: each becomes the regular files in it.
 * Links, devices and empty folders are left out; where a folder is moved as a whole (move_files.c), links
 * and devices are left out, too. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/transfer/stage_work.h"
#include "base/mem.h"
#include "base/system/fs.h"

#define DEPTH_MAX 128

static struct str no_slash(struct str s)
{
        while (str_ends(s, STR("/")))
                s.n--;
        return s;
}

/* Maps "SUB/x" to "there/x"; if the folder has no destination of its own, its contents are placed
 * separately. */
static char *inner(struct str folder, const char *name)
{
        struct buf b = {0};

        if (folder.n)
                buf_printf(&b, STR_FMT "/", STR_ARG(folder));
        buf_addz(&b, name);
        return buf_take(&b);
}

static int add_folder(struct stage_work *w, int fd, struct str from, struct str to, bool optional,
                      unsigned depth)
{
        DIR *dir = depth > DEPTH_MAX ? NULL : fdopendir(fd);
        struct dirent *e;
        int r = dir ? 0 : depth > DEPTH_MAX ? -ENAMETOOLONG : -errno;

        if (!dir)
                close(fd);
        while (r == 0 && (e = readdir(dir))) {
                struct stat st;

                if ((r = fs_pace_step(&w->pace)) < 0)
                        break;
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
                    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                MEM_CLEANUP char *inner_from = inner(from, e->d_name), *inner_to = inner(to, e->d_name);
                if (S_ISDIR(st.st_mode)) {
                        int sub = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                        r = sub < 0 ? -errno
                                    : add_folder(w, sub, str_of(inner_from), str_of(inner_to), optional,
                                                 depth + 1);
                } else if (S_ISREG(st.st_mode) && w->count >= STAGE_FILES_MAX) {
                        r = -E2BIG;
                } else if (S_ISREG(st.st_mode)) {
                        stage_work_file(w, inner_from, inner_to)->optional = optional;
                        inner_from = inner_to = NULL;
                }
        }
        if (dir)
                closedir(dir);
        return r;
}

int stage_work_folders(struct stage_work *w)
{
        size_t listed = w->count, kept = 0;
        int r = 0;

        for (size_t i = 0; i < listed; i++) {
                struct stage_file f = w->files[i];
                /* otherwise the folder is moved as a whole */
                bool alone = w->kind == STAGE_HASH || stage_work_is_url(f.to);
                int fd =
                        r < 0 || !alone || f.stands_in
                                ? -1
                                : fs_open_beneath(w->sandbox, f.from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

                if (fd < 0) {
                        w->files[kept++] = f;
                        continue;
                }
                r = add_folder(w, fd, no_slash(str_of(f.from)), no_slash(str_of(f.to)), f.optional, 0);
                if (r == -E2BIG)
                        err_set(&w->err, r, "the job has more than %d outputs, with those in %s",
                                STAGE_FILES_MAX, f.from);
                else if (r < 0)
                        err_set(&w->err, r, "cannot read the output %s: %s", f.from, strerror(-r));
                free(f.from);
                free(f.to);
        }
        if (kept < listed)
                memmove(&w->files[kept], &w->files[listed], (w->count - listed) * sizeof(*w->files));
        w->count -= listed - kept;
        return r;
}
