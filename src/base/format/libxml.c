#include "base/format/libxml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

struct libxml libxml;

int libxml_open(struct err *err)
{
        static bool loaded;
        void *library;

        if (loaded)
                return 0;
        library = dlopen("libxml2.so.2", RTLD_NOW | RTLD_LOCAL);
        if (!library)
                return err_set(err, -ENOSYS, "XML is read with libxml2, which is not there: %s", dlerror());
#define LIBXML_TAKE(name)                                                                                    \
        libxml.p_##name = (__typeof__(libxml.p_##name))dlsym(library, #name);                                \
        if (!libxml.p_##name)                                                                                \
                return err_set(err, -ENOSYS, "%s is not in the libxml2 that was found", #name);
        LIBXML_CALLS(LIBXML_TAKE)
        loaded = true;
        return 0;
}
