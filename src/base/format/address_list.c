#include "base/format/address_list.h"

#include <errno.h>
#include <string.h>

#define HTTPS "https://"
#define UNIX  "unix:"

static bool separates(char c)
{
        return c && strchr(", \t\r\n", c);
}

bool address_list_next(struct str *list, struct str *ret)
{
        size_t n = 0;

        while (list->n && separates(list->p[0]))
                *list = str_skip(*list, 1);
        for (; n < list->n; n++) {
                const struct str rest = str_skip(*list, n);

                if (n && separates(list->p[n - 1]) &&
                    (str_starts(rest, STR(HTTPS)) || str_starts(rest, STR(UNIX))))
                        break;
        }
        *ret = str_head(*list, n);
        *list = str_skip(*list, n);
        while (ret->n && separates(ret->p[ret->n - 1]))
                ret->n--;
        return ret->n > 0;
}

static bool is_https(struct str address)
{
        const struct str host = str_starts(address, STR(HTTPS)) ? str_skip(address, strlen(HTTPS)) : STR_NONE;
        uint64_t port;
        ptrdiff_t colon = str_rfind(host, ':');

        for (size_t i = 0; i < host.n; i++)
                if (separates(host.p[i]) || host.p[i] == '/')
                        return false;
        return colon > 0 && str_to_u64(str_skip(host, (size_t)colon + 1), &port) == 0 && port > 0 &&
               port < 65536;
}

int address_list_check(struct str list, bool *ret_https, struct err *err)
{
        struct str one;
        unsigned https = 0, sockets = 0;

        while (address_list_next(&list, &one)) {
                const bool url = is_https(one);

                if (!url && !str_starts(one, STR(UNIX "/")))
                        return err_set(err, -EINVAL, "must be https://HOST:PORT or unix:PATH");
                https += url;
                sockets += !url;
        }
        if (https + sockets == 0)
                return err_set(err, -EINVAL, "must be https://HOST:PORT or unix:PATH");
        if (https && sockets)
                return err_set(err, -EINVAL, "must be https only, or unix only");
        if (https + sockets > ADDRESS_LIST_MAX)
                return err_set(err, -EINVAL, "has more than %u addresses", ADDRESS_LIST_MAX);
        *ret_https = https > 0;
        return 0;
}
