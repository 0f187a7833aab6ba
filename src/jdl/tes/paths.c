#include "jdl/tes/paths.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

void tes_paths_deinit(struct tes_paths *p)
{
        for (size_t i = 0; i < p->count; i++)
                free(p->v[i].path);
        free(p->v);
        *p = (struct tes_paths){0};
}

int tes_path_check(struct str path, struct str *ret, struct err *err)
{
        struct str rest, part;

        while (path.n > 1 && path.p[path.n - 1] == '/')
                path.n--;
        if (path.n < 2 || path.p[0] != '/')
                return err_set(err, -EINVAL,
                               "an absolute path is expected, such as /data/file, not '" STR_FMT "'",
                               STR_ARG(str_head(path, 100)));
        if (path.n > 3000)
                return err_set(err, -EINVAL, "a path may have 3000 bytes");
        rest = str_skip(path, 1);
        while (str_cut(&rest, '/', &part))
                if (part.n == 0 || str_eqz(part, ".") || str_eqz(part, ".."))
                        return err_set(err, -EINVAL, "'" STR_FMT "' has an empty part, . or .. in it",
                                       STR_ARG(str_head(path, 100)));
                else if (part.n > 255)
                        return err_set(err, -EINVAL, "a part of a path may have 255 bytes");
        for (size_t i = 0; i < path.n; i++)
                if ((unsigned char)path.p[i] < ' ' || path.p[i] == 0x7f || strchr(",;:=\"\\#", path.p[i]))
                        return err_set(err, -EINVAL,
                                       "'" STR_FMT "' has a character in it that paths cannot have here: "
                                       ", ; : = \" # \\ or a control character",
                                       STR_ARG(str_head(path, 100)));
        if (path.p[path.n - 1] == ' ')
                return err_set(err, -EINVAL, "'" STR_FMT "' ends with a blank", STR_ARG(str_head(path, 100)));
        *ret = path;
        return 0;
}

struct str tes_path_folder(struct str path)
{
        ptrdiff_t slash = str_rfind(path, '/');

        return str_head(path, slash > 0 ? (size_t)slash : 1);
}

static bool is_in(struct str path, const char *folder)
{
        struct str f = str_of(folder);

        return str_starts(path, f) && (path.n == f.n || path.p[f.n] == '/');
}

int tes_paths_add(struct tes_paths *p, struct str path, bool folder, struct err *err)
{
        static const char *const taken[] = {"/proc", "/sys", "/dev"};

        if (path.n < 2)
                return err_set(err, -EINVAL,
                               "what a task shares is in a folder: it cannot be directly beneath /");
        for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
                if (is_in(path, taken[i]))
                        return err_set(err, -EINVAL, "%s is the container's own", taken[i]);
        MEM_GROW(p->v, p->cap, p->count + 1);
        p->v[p->count++] = (struct tes_path){str_dupz(path), folder};
        return 0;
}

/* Compares like strcmp, but with '/' before all other bytes, so that the content of a folder comes right
 * after it. No path has a byte below a blank. */
static int compare_paths(const char *a, const char *b)
{
        while (*a && *a == *b)
                a++, b++;
        return (*a == '/' ? 1 : (unsigned char)*a) - (*b == '/' ? 1 : (unsigned char)*b);
}

static int path_compare(const void *a, const void *b)
{
        const struct tes_path *x = a, *y = b;
        int r = compare_paths(x->path, y->path);

        return r ? r : (int)y->folder - (int)x->folder;
}

void tes_paths_reduce(struct tes_paths *p)
{
        size_t kept = 0;

        if (p->count)
                qsort(p->v, p->count, sizeof(*p->v), path_compare);
        for (size_t i = 0; i < p->count; i++) {
                struct str path = str_of(p->v[i].path);
                const struct tes_path *last = kept ? &p->v[kept - 1] : NULL;

                if (last && (str_eqz(path, last->path) || (last->folder && is_in(path, last->path))))
                        free(p->v[i].path);
                else
                        p->v[kept++] = p->v[i];
        }
        p->count = kept;
}
