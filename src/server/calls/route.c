#include "server/calls/route.h"

bool route_match(const char *pattern, struct str path, struct str param[2])
{
        struct str p = str_of(pattern), want, have;
        unsigned n = 0;

        while (str_cut(&p, '/', &want)) {
                if (str_ends(want, STR("+}"))) {
                        if (!path.p || path.n == 0)
                                return false;
                        param[n] = path;
                        return true;
                }
                if (!str_cut(&path, '/', &have))
                        return false;
                if (want.n && want.p[0] == '{') {
                        if (have.n == 0)
                                return false;
                        param[n++] = have;
                } else if (!str_eq(want, have)) {
                        return false;
                }
        }
        return path.p == NULL;
}

const struct route *route_find(const struct route *routes, size_t count, enum http_method method,
                               struct str path, struct str param[2], bool *ret_path_known)
{
        *ret_path_known = false;
        for (size_t i = 0; i < count; i++) {
                struct str found[2] = {0};

                if (!route_match(routes[i].path, path, found))
                        continue;
                *ret_path_known = true;
                if (routes[i].method == method || (routes[i].method == HTTP_GET && method == HTTP_HEAD)) {
                        param[0] = found[0];
                        param[1] = found[1];
                        return &routes[i];
                }
        }
        return NULL;
}
