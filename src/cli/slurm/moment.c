#include "cli/slurm/moment.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#define DAY_S 86400

/* ---- durations */

/* Numbers with colons between: at most three, none negative. */
static int read_parts(struct str text, int64_t parts[3], size_t *ret_count)
{
        struct str one;
        uint64_t n;

        *ret_count = 0;
        if (text.n == 0)
                return -EINVAL;
        while (str_cut(&text, ':', &one)) {
                if (*ret_count == 3 || str_to_u64(one, &n) != 0 || n > UINT32_MAX)
                        return -EINVAL;
                parts[(*ret_count)++] = (int64_t)n;
        }
        return 0;
}

int moment_limit(struct str text, int64_t *ret_s)
{
        int64_t parts[3] = {0}, days = 0, s;
        ptrdiff_t dash = str_find(text, '-');
        size_t count;
        uint64_t n;

        if (str_ieqz(text, "unlimited") || str_ieqz(text, "infinite") || str_eqz(text, "-1")) {
                *ret_s = 0;
                return 0;
        }
        if (dash >= 0) {
                if (str_to_u64(str_head(text, (size_t)dash), &n) != 0 || n > 1000000)
                        return -EINVAL;
                days = (int64_t)n;
                text = str_skip(text, (size_t)dash + 1);
        }
        if (read_parts(text, parts, &count) != 0)
                return -EINVAL;
        if (dash >= 0)
                s = days * DAY_S + parts[0] * 3600 + parts[1] * 60 + parts[2];
        else if (count == 3)
                s = parts[0] * 3600 + parts[1] * 60 + parts[2];
        else
                s = parts[0] * 60 + parts[1];
        *ret_s = (s + 59) / 60 * 60;
        return 0;
}

void moment_short(struct buf *out, int64_t s)
{
        s = s < 0 ? 0 : s;
        if (s >= DAY_S)
                buf_printf(out, "%lld-%02lld:%02lld:%02lld", (long long)(s / DAY_S),
                           (long long)(s / 3600 % 24), (long long)(s / 60 % 60), (long long)(s % 60));
        else if (s >= 3600)
                buf_printf(out, "%lld:%02lld:%02lld", (long long)(s / 3600), (long long)(s / 60 % 60),
                           (long long)(s % 60));
        else
                buf_printf(out, "%lld:%02lld", (long long)(s / 60), (long long)(s % 60));
}

void moment_long(struct buf *out, int64_t s)
{
        s = s < 0 ? 0 : s;
        if (s >= DAY_S)
                moment_short(out, s);
        else
                buf_printf(out, "%02lld:%02lld:%02lld", (long long)(s / 3600), (long long)(s / 60 % 60),
                           (long long)(s % 60));
}

void moment_date(struct buf *out, int64_t at_s, const char *otherwise)
{
        time_t at = (time_t)at_s;
        struct tm tm;
        char text[32];

        if (at_s <= 0 || !localtime_r(&at, &tm) ||
            strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
                buf_addz(out, otherwise);
        else
                buf_addz(out, text);
}

/* ---- clock times */

static const struct {
        const char *name;
        int64_t s;
} units[] = {{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", DAY_S}, {"week", 7 * DAY_S}};

/* "+3", "+3hours", "-10minutes" behind now. */
static int read_shift(struct str text, int64_t *ret_s)
{
        int64_t sign = text.p[0] == '-' ? -1 : 1, unit = 1;
        struct str name;
        size_t digits = 0;
        uint64_t n;

        text = str_trim_left(str_skip(text, 1));
        while (digits < text.n && isdigit((unsigned char)text.p[digits]))
                digits++;
        if (str_to_u64(str_head(text, digits), &n) != 0 || n > UINT32_MAX)
                return -EINVAL;
        name = str_trim(str_skip(text, digits));
        if (name.n) {
                unit = 0;
                for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                        if (str_istarts(str_of(units[i].name), name) ||
                            (str_istarts(name, str_of(units[i].name)) &&
                             name.n == strlen(units[i].name) + 1 && (name.p[name.n - 1] | 32) == 's'))
                                unit = unit ? unit : units[i].s;
        }
        *ret_s = sign * (int64_t)n * unit;
        return unit ? 0 : -EINVAL;
}

static int two(struct str s, size_t at, int *ret)
{
        if (at + 2 > s.n || !isdigit((unsigned char)s.p[at]) || !isdigit((unsigned char)s.p[at + 1]))
                return -EINVAL;
        *ret = (s.p[at] - '0') * 10 + s.p[at + 1] - '0';
        return 0;
}

/* HH:MM[:SS] [AM|PM] */
static int read_clock(struct str text, struct tm *tm)
{
        static const struct {
                const char *name;
                int hour;
        } names[] = {{"midnight", 0}, {"noon", 12}, {"elevenses", 11}, {"fika", 15}, {"teatime", 16}};
        bool pm = false, am = false;
        int64_t parts[3] = {0};
        size_t count;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (str_ieqz(text, names[i].name)) {
                        tm->tm_hour = names[i].hour;
                        tm->tm_min = tm->tm_sec = 0;
                        return 0;
                }
        if (text.n > 2) {
                struct str tail = str_skip(text, text.n - 2);

                pm = str_ieqz(tail, "pm");
                am = str_ieqz(tail, "am");
                if (am || pm)
                        text = str_trim(str_head(text, text.n - 2));
        }
        if (read_parts(text, parts, &count) != 0 || count < 2 || parts[1] > 59 || parts[2] > 59 ||
            parts[0] > ((am || pm) ? 12 : 23) || ((am || pm) && parts[0] == 0))
                return -EINVAL;
        tm->tm_hour = (int)((am || pm) ? parts[0] % 12 + (pm ? 12 : 0) : parts[0]);
        tm->tm_min = (int)parts[1];
        tm->tm_sec = (int)parts[2];
        return 0;
}

/* YYYY-MM-DD, MMDD[YY], MM/DD[/YY], MM.DD[.YY]; *ret_used is how long it is. */
static int read_date(struct str s, struct tm *tm, bool *ret_year, size_t *ret_used)
{
        int a, b, y;
        size_t at = 0;
        char mark;

        *ret_year = true;
        if (two(s, 0, &a) == 0 && two(s, 2, &b) == 0 && s.n >= 10 && s.p[4] == '-' && s.p[7] == '-') {
                tm->tm_year = a * 100 + b - 1900;
                *ret_used = 10;
                return two(s, 5, &a) == 0 && two(s, 8, &b) == 0 ? (tm->tm_mon = a - 1, tm->tm_mday = b, 0)
                                                                : -EINVAL;
        }
        *ret_year = false;
        if (two(s, 0, &a) == 0 && two(s, 2, &b) == 0) {
                *ret_used = 4;
                if (two(s, 4, &y) == 0) {
                        *ret_used = 6;
                        *ret_year = true;
                        tm->tm_year = y + 100;
                }
                tm->tm_mon = a - 1;
                tm->tm_mday = b;
                return 0;
        }
        for (a = 0; at < s.n && at < 2 && isdigit((unsigned char)s.p[at]); at++)
                a = a * 10 + s.p[at] - '0';
        if (at == 0 || at == s.n || (s.p[at] != '/' && s.p[at] != '.'))
                return -EINVAL;
        mark = s.p[at++];
        for (b = 0, y = 0; at < s.n && y < 2 && isdigit((unsigned char)s.p[at]); at++, y++)
                b = b * 10 + s.p[at] - '0';
        if (y == 0)
                return -EINVAL;
        if (at < s.n && s.p[at] == mark) {
                if (two(s, at + 1, &y) != 0)
                        return -EINVAL;
                tm->tm_year = y + 100;
                *ret_year = true;
                at += 3;
        }
        tm->tm_mon = a - 1;
        tm->tm_mday = b;
        *ret_used = at;
        return 0;
}

int moment_read(struct str text, int64_t now_s, int64_t *ret_s)
{
        time_t now = (time_t)now_s;
        bool dated = false, year = true;
        struct tm tm;
        size_t used = 0;
        int64_t shift;
        time_t at;

        text = str_trim(text);
        if (str_istarts(text, STR("now"))) {
                text = str_trim(str_skip(text, 3));
                if (text.n && ((text.p[0] != '+' && text.p[0] != '-') || read_shift(text, &shift) != 0))
                        return -EINVAL;
                *ret_s = now_s + (text.n ? shift : 0);
                return 0;
        }
        if (text.n == 0 || !localtime_r(&now, &tm))
                return -EINVAL;
        if (str_ieqz(text, "today") || str_ieqz(text, "tomorrow")) {
                tm.tm_mday += str_ieqz(text, "tomorrow");
                tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
                dated = true;
        } else if (read_clock(text, &tm) != 0) {
                if (read_date(text, &tm, &year, &used) != 0 || tm.tm_mon < 0 || tm.tm_mon > 11 ||
                    tm.tm_mday < 1 || tm.tm_mday > 31)
                        return -EINVAL;
                dated = true;
                tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
                text = str_skip(text, used);
                if (text.n && (!strchr("T- ", text.p[0]) || read_clock(str_skip(text, 1), &tm) != 0))
                        return -EINVAL;
        }
        tm.tm_isdst = -1;
        at = mktime(&tm);
        if (at < now && !dated) {
                tm.tm_mday++;
                tm.tm_isdst = -1;
                at = mktime(&tm);
        } else if (at < now - DAY_S && !year) {
                tm.tm_year++;
                tm.tm_isdst = -1;
                at = mktime(&tm);
        }
        *ret_s = (int64_t)at;
        return at == (time_t)-1 ? -EINVAL : 0;
}
