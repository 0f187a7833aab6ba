#include "cli/slurm/hosts.h"

#include <errno.h>

static int hosts_fail_list(struct str list, struct err *err)
{
        return err_set(err, -EINVAL, "Invalid node name specified: " STR_FMT, STR_ARG(str_head(list, 100)));
}

/* Takes one entry, up to a comma outside of brackets. */
static struct str next_entry(struct str *rest)
{
        size_t i = 0;
        bool inside = false;
        struct str entry;

        for (; i < rest->n && (inside || rest->p[i] != ','); i++)
                inside = rest->p[i] == '[' || (inside && rest->p[i] != ']');
        entry = str_head(*rest, i);
        *rest = i < rest->n ? str_skip(*rest, i + 1) : STR_NONE;
        return entry;
}

int hosts_expand(struct str list, struct buf *out, struct err *err)
{
        struct str rest = list;
        size_t count = 0;

        while (rest.n) {
                struct str entry = next_entry(&rest), before = entry, numbers, behind, one;
                ptrdiff_t open = str_find(entry, '['), close = str_find(entry, ']');

                if (entry.n == 0)
                        continue;
                if (open < 0) {
                        if (close >= 0 || ++count > HOSTS_MAX)
                                return hosts_fail_list(list, err);
                        buf_printf(out, "%s" STR_FMT, out->n ? "," : "", STR_ARG(entry));
                        continue;
                }
                if (close < open + 2)
                        return hosts_fail_list(list, err);
                before = str_head(entry, (size_t)open);
                numbers = str_make(entry.p + open + 1, (size_t)(close - open - 1));
                behind = str_skip(entry, (size_t)close + 1);
                if (str_find(behind, '[') >= 0)
                        return hosts_fail_list(list, err);
                while (str_cut(&numbers, ',', &one)) {
                        struct str last = one, first;
                        uint64_t from, to;

                        str_cut(&last, '-', &first);
                        if (str_to_u64(first, &from) != 0 || str_to_u64(last.p ? last : first, &to) != 0 ||
                            to < from || to - from >= HOSTS_MAX)
                                return hosts_fail_list(list, err);
                        for (; from <= to; from++) {
                                if (++count > HOSTS_MAX)
                                        return hosts_fail_list(list, err);
                                buf_printf(out, "%s" STR_FMT "%0*llu" STR_FMT, out->n ? "," : "",
                                           STR_ARG(before), (int)first.n, (unsigned long long)from,
                                           STR_ARG(behind));
                        }
                }
        }
        return out->n ? 0 : hosts_fail_list(list, err);
}
