#include "base/system/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Name of the C library's loader in the portable agent (agent/portable.c). If its launcher started this
 * program, /proc/self/exe is the loader, and argv[0] the launcher's absolute path. */
#define PORTABLE_LOADER "drover-loader"

const char *program_self(void)
{
        static char self[4096];

        if (!*self) {
                ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

                self[n > 0 ? n : 0] = '\0';
                if (str_ends(str_of(self), STR("/" PORTABLE_LOADER)) && *program_invocation_name == '/')
                        snprintf(self, sizeof(self), "%s", program_invocation_name);
        }
        return self;
}

static struct str own_folder(void)
{
        struct str self = str_of(program_self());
        ptrdiff_t slash = str_rfind(self, '/');

        return str_head(self, slash > 0 ? (size_t)slash : 0);
}

static bool try_path(struct buf *ret, struct str folder, const char *between, const char *name)
{
        buf_reset(ret);
        buf_printf(ret, STR_FMT "/%s%s", STR_ARG(folder), between, name);
        return folder.n && access(buf_z(ret), X_OK) == 0;
}

int program_find(const char *name, struct buf *ret, struct err *err)
{
        static const char *const between[] = {"",        "../server/", "../agent/",         "../move/",
                                              "../cli/", "../sbin/",   "../libexec/drover/"};
        struct str path = str_of(getenv("PATH")), part;

        for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++)
                if (try_path(ret, own_folder(), between[i], name))
                        return 0;
        if (try_path(ret, STR(DROVER_LIBEXECDIR), "", name))
                return 0;
        while (str_cut(&path, ':', &part))
                if (part.n && part.p[0] == '/' && try_path(ret, part, "", name))
                        return 0;
        return err_set(err, -ENOENT, "%s is not installed: it is neither beside this program nor in $PATH",
                       name);
}

int program_shipped(const char *kind, const char *name, struct buf *ret, struct err *err)
{
        static const char *const between[] = {"../share/drover/", "../../../dist/"};
        BUF_CLEANUP struct buf file = {0};

        buf_reset(ret);
        buf_addz(ret, name);
        if (strchr(name, '/'))
                return 0;
        buf_printf(&file, "%s/%s", kind, name);
        for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++)
                if (try_path(ret, own_folder(), between[i], buf_z(&file)))
                        return 0;
        if (try_path(ret, STR(DROVER_DATADIR), "", buf_z(&file)))
                return 0;
        return err_set(err, -ENOENT,
                       "no program '%s' comes with Drover; name one of your own by its absolute path", name);
}
