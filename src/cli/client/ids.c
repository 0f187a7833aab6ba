#include "cli/client/ids.h"

#include <errno.h>

int id_parse(struct str text, struct id *ret, struct err *err)
{
        struct str rest = text, request, first;
        struct id id = {.whole = str_find(text, '.') < 0};
        uint64_t a = 0, b = 0;
        bool ok, range;

        /* str_to_u64 would take a sign. */
        for (size_t i = 0; i < text.n; i++)
                if (!(text.p[i] >= '0' && text.p[i] <= '9') && text.p[i] != '.' && text.p[i] != '-')
                        goto wrong;
        str_cut(&rest, '.', &request);
        ok = str_to_u64(request, &id.request) == 0 && id.request > 0 && str_find(request, '-') < 0;
        if (ok && !id.whole) {
                range = str_find(rest, '-') >= 0;
                str_cut(&rest, '-', &first);
                ok = str_to_u64(first, &a) == 0 && a <= UINT32_MAX;
                b = a;
                if (ok && range)
                        ok = str_find(rest, '-') < 0 && str_to_u64(rest, &b) == 0 && b <= UINT32_MAX &&
                             a <= b;
        }
        if (!ok)
                goto wrong;
        id.first = (uint32_t)a;
        id.last = (uint32_t)b;
        *ret = id;
        return 0;
wrong:
        if (str_ieqz(text, "all"))
                return err_set(
                        err, -EINVAL,
                        "\"all\" is not an id: all jobs of a user are -u USER, and `drover wait` without "
                        "an id waits for all of yours");
        return err_set(err, -EINVAL,
                       "\"" STR_FMT "\" is not an id: write 7 for a request, 7.42 for a job, 7.0-99 for a "
                       "range of jobs",
                       STR_ARG(text));
}
