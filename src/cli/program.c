#include "cli/program.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static bool try_path(struct buf *ret, struct str folder, const char *between, const char *name)
{
        buf_reset(ret);
        buf_printf(ret, STR_FMT "/%s%s", STR_ARG(folder), between, name);
        return access(buf_z(ret), X_OK) == 0;
}

int program_find(const char *name, struct buf *ret, struct err *err)
{
        static const char *const between[] = {"", "../server/", "../agent/", "../sbin/"};
        char self[4096];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
        struct str folder = str_make(self, n > 0 ? (size_t)n : 0), path = str_of(getenv("PATH")), part;
        ptrdiff_t slash = str_rfind(folder, '/');

        folder = str_head(folder, slash > 0 ? (size_t)slash : 0);
        for (size_t i = 0; folder.n && i < sizeof(between) / sizeof(between[0]); i++)
                if (try_path(ret, folder, between[i], name))
                        return 0;
        if (try_path(ret, STR(DROVER_LIBEXECDIR), "", name))
                return 0;
        while (str_cut(&path, ':', &part))
                if (part.n && part.p[0] == '/' && try_path(ret, part, "", name))
                        return 0;
        return err_set(err, -ENOENT, "%s is not installed: it is neither beside drover nor in $PATH", name);
}
