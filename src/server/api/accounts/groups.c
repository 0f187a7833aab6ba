#include "server/api/accounts/groups.h"

#include <time.h>

static const char *const by_names[BYS] = {"user", "account", "place", "site", "month"};

bool groups_by(struct call *c, bool ret[static BYS])
{
        struct str rest = call_query(c, "by"), one;

        while (rest.n && str_cut(&rest, ',', &one)) {
                int i = 0;

                while (i < BYS && !str_eqz(one, by_names[i]))
                        i++;
                if (i == BYS) {
                        call_fail(c, 400, "bad_request",
                                  "by must be some of user, account, place, site and month");
                        return false;
                }
                ret[i] = true;
        }
        return true;
}

static void month_print(struct buf *out, int64_t at_ms)
{
        time_t s = (time_t)(at_ms / 1000);
        struct tm tm = {.tm_year = 70};

        gmtime_r(&s, &tm);
        buf_printf(out, "%04d-%02d", tm.tm_year + 1900, tm.tm_mon + 1);
}

void groups_key(struct buf *out, const bool by[static BYS], const struct group_values *v)
{
        const struct str texts[] = {
                [BY_USER] = v->user, [BY_ACCOUNT] = v->account, [BY_PLACE] = v->place, [BY_SITE] = v->site};

        for (int i = 0; i < BYS; i++) {
                if (!by[i])
                        continue;
                if (out->n)
                        buf_char(out, '\x1f');
                if (i == BY_MONTH)
                        month_print(out, v->at_ms);
                else if (texts[i].n)
                        buf_str(out, texts[i]);
                else
                        buf_char(out, '-');
        }
}

void groups_write(struct json *j, const bool by[static BYS], struct str key)
{
        struct str rest = key, value;

        for (int i = 0; i < BYS; i++)
                if (by[i] && str_cut(&rest, '\x1f', &value))
                        json_kstr(j, by_names[i], value);
}
