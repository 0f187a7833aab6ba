#include "base/system/libcurl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

#include "base/str.h"

struct libcurl libcurl;

int libcurl_open(struct err *err)
{
        static bool loaded;
        const curl_version_info_data *about;
        void *library;

        if (loaded)
                return 0;
        library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
        if (!library)
                return err_set(err, -ENOSYS,
                               "other servers are reached through libcurl, which is not there: %s",
                               dlerror());
#define LIBCURL_TAKE(name)                                                                                   \
        libcurl.p_##name = (__typeof__(libcurl.p_##name))dlsym(library, #name);                              \
        if (!libcurl.p_##name)                                                                               \
                return err_set(err, -ENOSYS, "%s is not in the libcurl that was found", #name);
        LIBCURL_CALLS(LIBCURL_TAKE)
        about = libcurl.p_curl_version_info(CURLVERSION_NOW);
        if (!about->ssl_version || !str_starts(str_of(about->ssl_version), STR("OpenSSL/")))
                return err_set(err, -ENOSYS, "libcurl is here, but not the one with OpenSSL (it has %s)",
                               about->ssl_version ? about->ssl_version : "no TLS");
        if (libcurl.p_curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return err_set(err, -ENOSYS, "libcurl does not start");
        loaded = true;
        return 0;
}
