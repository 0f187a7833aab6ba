#include "base/system/cgroup_mount.h"

#include "base/buf.h"

static bool has_word(struct str list, const char *word)
{
        struct str w;

        while (str_cut(&list, ',', &w))
                if (str_eqz(w, word))
                        return true;
        return false;
}

/* Our path within the hierarchy: a line is ID:CONTROLLERS:PATH, and "0::PATH" for version 2. */
static bool own_path(struct str self, const char *controller, struct str *ret)
{
        struct str line, id, list;

        while (str_cut(&self, '\n', &line)) {
                if (!str_cut(&line, ':', &id) || !str_cut(&line, ':', &list))
                        continue;
                if (*controller ? has_word(list, controller) : str_eqz(id, "0") && list.n == 0) {
                        *ret = line;
                        return true;
                }
        }
        return false;
}

/* A line of mountinfo: ID PARENT DEVICE ROOT POINT OPTIONS… - TYPE SOURCE SUPER_OPTIONS. */
struct mount {
        struct str root, point, type, options;
};

static bool read_mount(struct str line, struct mount *ret)
{
        ptrdiff_t dash = str_search(line, STR(" - "));
        struct str head, tail, ignored;

        if (dash < 0)
                return false;
        head = str_head(line, (size_t)dash);
        tail = str_skip(line, (size_t)dash + 3);
        for (unsigned i = 0; i < 3; i++)
                if (!str_word(&head, &ignored))
                        return false;
        return str_word(&head, &ret->root) && str_word(&head, &ret->point) && str_word(&tail, &ret->type) &&
               str_word(&tail, &ignored) && str_word(&tail, &ret->options);
}

static bool find_mount(struct str mountinfo, const char *controller, struct mount *ret)
{
        struct str line;

        while (str_cut(&mountinfo, '\n', &line)) {
                if (!read_mount(line, ret))
                        continue;
                if (*controller ? str_eqz(ret->type, "cgroup") && has_word(ret->options, controller)
                                : str_eqz(ret->type, "cgroup2"))
                        return true;
        }
        return false;
}

char *cgroup_mount_own(struct str mountinfo, struct str self, const char *controller)
{
        struct buf b = {0};
        struct mount m;
        struct str path;

        if (!find_mount(mountinfo, controller, &m) || !own_path(self, controller, &path))
                return NULL;
        if (m.root.n > 1) /* a part of the hierarchy is mounted: paths begin below it */
                path = str_starts(path, m.root) ? str_skip(path, m.root.n) : STR_NONE;
        if (path.n == 1)
                path = STR_NONE;
        buf_str(&b, m.point);
        buf_str(&b, path);
        return buf_take(&b);
}
