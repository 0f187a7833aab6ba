/* libcurl: the library libcurl, opened at run time when first needed: it loads some thirty other libraries,
 * and most runs of our programs make no request (`drover-agent --stage` is run once for each job). The build
 * uses its headers only. Other threads may use the calls after the first libcurl_open has returned. */
#pragma once
#include <curl/curl.h>

#include "base/err.h"

/* curl.h with type checks defines these as macros, whose addresses cannot be taken. */
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
/* Opens the libcurl that is built with OpenSSL, and initializes it. 0; -ENOSYS with err: this machine has
 * none. */
int libcurl_open(struct err *err);
