/* libcurl, opened when it is first needed: it brings some thirty libraries with it, and most runs of our
 * programs make no request by it (`drover-agent --stage` is run once for each job). Only its headers are used
 * to build. One thread, or after the first call of libcurl_open has returned. */
#pragma once
#include <curl/curl.h>

#include "base/err.h"

/* With type checks, curl.h has these as macros, which take no pointers to functions. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define LIBCURL_CALLS(X)                                                                                     \
        X(curl_easy_init)                                                                                    \
        X(curl_easy_setopt)                                                                                  \
        X(curl_easy_perform)                                                                                 \
        X(curl_easy_getinfo)                                                                                 \
        X(curl_easy_strerror)                                                                                \
        X(curl_easy_reset)                                                                                   \
        X(curl_easy_cleanup)                                                                                 \
        X(curl_global_init)                                                                                  \
        X(curl_multi_init)                                                                                   \
        X(curl_multi_setopt)                                                                                 \
        X(curl_multi_add_handle)                                                                             \
        X(curl_multi_remove_handle)                                                                          \
        X(curl_multi_socket_action)                                                                          \
        X(curl_multi_assign)                                                                                 \
        X(curl_multi_info_read)                                                                              \
        X(curl_multi_cleanup)                                                                                \
        X(curl_slist_append)                                                                                 \
        X(curl_slist_free_all)                                                                               \
        X(curl_version_info)

struct libcurl {
#define LIBCURL_POINTER(name) __typeof__(name) *p_##name;
        LIBCURL_CALLS(LIBCURL_POINTER)
};

extern struct libcurl libcurl; /* the calls, once libcurl_open has given 0 */
/* Opens libcurl, the one with OpenSSL, and initializes it. 0; -ENOSYS with err: it is not on this machine. */
int libcurl_open(struct err *err);
