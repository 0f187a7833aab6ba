#include "base/job/offer_limit.h"

#include <ctype.h>
#include <errno.h>

#define NAME_MAX_BYTES 64u
#define MOST_MAX       (1ull << 53)

static bool is_name(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] != '_' && !isalpha((unsigned char)s.p[i]) &&
                    (i == 0 || !isdigit((unsigned char)s.p[i])))
                        return false;
        return s.n > 0 && s.n <= NAME_MAX_BYTES;
}

int offer_limit_next(struct str *text, struct offer_limit *ret)
{
        struct str rest = str_trim(*text), one;
        uint64_t most;
        ptrdiff_t at;

        if (rest.n == 0)
                return 1;
        str_cut(&rest, ',', &one);
        at = str_find(one, '=');
        if (at < 0 || str_to_u64(str_trim(str_skip(one, (size_t)at + 1)), &most) != 0 || most > MOST_MAX)
                return -EINVAL;
        ret->name = str_trim(str_head(one, (size_t)at));
        ret->most = (int64_t)most;
        *text = rest;
        return is_name(ret->name) ? 0 : -EINVAL;
}

bool offer_limits_good(struct str text)
{
        struct offer_limit one;
        int r;

        while ((r = offer_limit_next(&text, &one)) == 0)
                ;
        return r > 0;
}
