#include "cli/condor/clock_text.h"

#include <time.h>

void clock_text_run(struct buf *out, int64_t seconds)
{
        long long s = seconds > 0 ? seconds : 0;

        buf_printf(out, "%lld+%02lld:%02lld:%02lld", s / 86400, s / 3600 % 24, s / 60 % 60, s % 60);
}

void clock_text_date(struct buf *out, int64_t at_s)
{
        time_t at = (time_t)at_s;
        struct tm tm;

        if (at_s <= 0 || !localtime_r(&at, &tm))
                buf_addz(out, "    ???    ");
        else
                buf_printf(out, "%2d/%-2d %02d:%02d", tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min);
}

void clock_text_full(struct buf *out, int64_t at_s)
{
        time_t at = (time_t)at_s;
        struct tm tm;

        if (localtime_r(&at, &tm))
                buf_printf(out, "%02d/%02d/%02d %02d:%02d:%02d", tm.tm_mon + 1, tm.tm_mday, tm.tm_year % 100,
                           tm.tm_hour, tm.tm_min, tm.tm_sec);
}
