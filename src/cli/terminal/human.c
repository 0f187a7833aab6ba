#include "cli/terminal/human.h"

#include <errno.h>
#include <string.h>
#include <time.h>

void human_duration(struct buf *out, int64_t ms)
{
        int64_t s = ms / 1000;

        if (ms < 0)
                ms = s = 0;
        if (ms > 0 && ms < 10000)
                buf_printf(out, "%d.%ds", (int)s, (int)(ms % 1000 / 100));
        else if (s < 60)
                buf_printf(out, "%ds", (int)s);
        else if (s < 3600)
                buf_printf(out, "%d:%02d", (int)(s / 60), (int)(s % 60));
        else if (s < 86400)
                buf_printf(out, "%d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
        else
                buf_printf(out, "%lldd%02dh", (long long)(s / 86400), (int)(s / 3600 % 24));
}

void human_range(struct buf *out, int64_t from_ms, int64_t to_ms)
{
        struct buf to BUF_CLEANUP = {0};
        size_t from = out->n;

        human_duration(out, from_ms);
        human_duration(&to, to_ms);
        if (to_ms > from_ms && !str_eq(str_skip(buf_view(out), from), buf_view(&to)))
                buf_printf(out, "-%s", buf_z(&to));
}

void human_bytes(struct buf *out, int64_t bytes)
{
        static const char unit[] = "BKMGTPE";
        unsigned u = 0;
        double v = (double)bytes;

        for (; v >= 1023.5 && unit[u + 1]; u++)
                v /= 1024;
        if (u > 0 && v < 9.95 && (int64_t)(v * 10 + 0.5) % 10 != 0)
                buf_printf(out, "%.1f%c", v, unit[u]);
        else
                buf_printf(out, "%.0f%c", v, unit[u]);
}

void human_count(struct buf *out, int64_t n, const char *one, const char *many)
{
        buf_printf(out, "%lld %s", (long long)n, n == 1 ? one : many);
}

/* Returns how many bytes of text the time takes; 0: it cannot be told. */
static size_t time_print(char *text, size_t size, time_t at, time_t now)
{
        struct tm tm, today;

        if (!localtime_r(&at, &tm) || !localtime_r(&now, &today))
                return 0;
        if (tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday)
                return strftime(text, size, "%H:%M:%S", &tm);
        if (tm.tm_year == today.tm_year)
                return strftime(text, size, "%m-%d %H:%M", &tm);
        return strftime(text, size, "%Y-%m-%d", &tm);
}

void human_time(struct buf *out, int64_t at_ms, int64_t now_ms)
{
        /* The last one, because many rows of a listing have the time of the row before. */
        static _Thread_local struct {
                time_t at, now;
                size_t n;
                char text[40];
        } last;
        time_t at = (time_t)(at_ms / 1000), now = (time_t)(now_ms / 1000);

        if (at_ms > 0 && (last.n == 0 || last.at != at || last.now != now)) {
                last.n = time_print(last.text, sizeof(last.text), at, now);
                last.at = at;
                last.now = now;
        }
        if (at_ms > 0 && last.n > 0)
                buf_add(out, last.text, last.n);
        else
                buf_char(out, '-');
}

void human_safe(struct buf *out, struct str text)
{
        size_t plain = 0; /* where the bytes begin that go out as they are */

        for (size_t i = 0; i < text.n; i++) {
                unsigned char c = (unsigned char)text.p[i];

                if (c >= 0x20 && c != 0x7f && c != 0xc2)
                        continue;
                buf_add(out, text.p + plain, i - plain);
                if (c == '\n' || c == '\t')
                        buf_char(out, ' ');
                else if (c < 0x20 || c == 0x7f)
                        buf_char(out, '?');
                else if (c == 0xc2 && i + 1 < text.n && (unsigned char)text.p[i + 1] < 0xa0) {
                        buf_char(out, '?'); /* the 8-bit control characters, U+0080 to U+009F */
                        i++;
                } else
                        buf_char(out, (char)c);
                plain = i + 1;
        }
        if (plain < text.n)
                buf_add(out, text.p + plain, text.n - plain);
}

unsigned human_width(struct str text)
{
        unsigned n = 0;

        for (size_t i = 0; i < text.n; i++)
                n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
        return n;
}

/* "1:30:00" or "2-12:00:00": hours, minutes and seconds, and days before them. */
static bool clock_length(struct str text, int64_t *ret_s)
{
        uint64_t part[4] = {0}; /* days, hours, minutes, seconds */
        struct str days, rest = text;
        unsigned n = 1;

        if (str_find(text, '-') >= 0) {
                str_cut(&rest, '-', &days);
                if (str_to_u64(days, &part[0]) != 0 || part[0] > 1000000)
                        return false;
        }
        for (struct str number; n < 4 && rest.p && str_cut(&rest, ':', &number); n++)
                if (str_to_u64(number, &part[n]) != 0 || part[n] > (n == 1 ? 1000000 : 59))
                        return false;
        if (n != 4 || rest.p)
                return false;
        *ret_s = (int64_t)(((part[0] * 24 + part[1]) * 60 + part[2]) * 60 + part[3]);
        return true;
}

int human_to_seconds(struct str text, int64_t *ret_s, struct err *err)
{
        static const struct {
                char letter;
                int64_t s;
        } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
        struct str number = text;
        int64_t unit = 1;
        double v;

        for (unsigned i = 0; text.n && i < sizeof(units) / sizeof(units[0]); i++)
                if (text.p[text.n - 1] == units[i].letter) {
                        unit = units[i].s;
                        number = str_head(text, text.n - 1);
                        break;
                }
        if (str_find(text, ':') >= 0 && clock_length(text, ret_s))
                return 0;
        if (str_to_double(number, &v) != 0 || !(v >= 0) || v * (double)unit > 1e12)
                return err_set(err, -EINVAL,
                               "\"" STR_FMT
                               "\" is not a length of time: write 90, 90s, 15m, 1h, 2d or 1:30:00",
                               STR_ARG(text));
        *ret_s = (int64_t)(v * (double)unit);
        return 0;
}

#define FROM_NOW_MAX_S 3000000000ll /* the server's times have an end */

int human_to_time(const char *text, int64_t now_ms, int64_t *ret_ms, struct err *err)
{
        static const char *const forms[] = {"%Y-%m-%d",       "%Y-%m-%dT%H:%M",    "%Y-%m-%dT%H:%M:%S",
                                            "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%H:%M",
                                            "%H:%M:%S"};
        time_t now_s = (time_t)(now_ms / 1000);
        struct tm today = {0};
        int64_t seconds;

        if (strcmp(text, "now") == 0) {
                *ret_ms = now_ms;
                return 0;
        }
        localtime_r(&now_s, &today);
        today.tm_hour = today.tm_min = today.tm_sec = 0;
        today.tm_mday -= strcmp(text, "yesterday") == 0;
        today.tm_isdst = -1;
        if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0) {
                *ret_ms = (int64_t)mktime(&today) * 1000;
                return 0;
        }
        if ((text[0] == '+' || text[0] == '-') && human_to_seconds(str_of(text + 1), &seconds, NULL) == 0 &&
            seconds < FROM_NOW_MAX_S) {
                *ret_ms = now_ms + (text[0] == '+' ? seconds : -seconds) * 1000;
                return 0;
        }
        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
                struct tm tm = today;
                const char *end = strptime(text, forms[i], &tm);

                if (end && !*end) {
                        *ret_ms = (int64_t)mktime(&tm) * 1000;
                        return 0;
                }
        }
        return err_set(
                err, -EINVAL,
                "'%s' is not a time: write 2026-11-24, 2026-11-24T09:30, 09:30, today, -1h for an hour "
                "ago, or +30d for a time from now",
                text);
}
