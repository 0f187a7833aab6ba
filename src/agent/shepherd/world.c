/* The shepherd's world outside its state: clocks, memory, and its log. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

#define LINES_MAX 200 /* lines per minute, so that a misbehaving agent cannot fill the disk */

static int64_t clock_ms(clockid_t id)
{
        struct timespec t;

        clock_gettime(id, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t boot_ms(void)
{
        return clock_ms(CLOCK_BOOTTIME);
}

int64_t wall_ms(void)
{
        return clock_ms(CLOCK_REALTIME);
}

void *must(void *p)
{
        if (!p) {
                complain("out of memory");
                abort();
        }
        return p;
}

static bool too_many(void)
{
        static int64_t minute;
        static unsigned lines;
        int64_t now = boot_ms() / 60000;

        if (now != minute) {
                minute = now;
                lines = 0;
        }
        return ++lines > LINES_MAX;
}

void complain(const char *fmt, ...)
{
        char line[1024];
        struct tm tm;
        time_t now = time(NULL);

        if (too_many())
                return;
        gmtime_r(&now, &tm);
        size_t n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%SZ warn drover-shepherd ", &tm);
        va_list ap;
        va_start(ap, fmt);
        int more = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
        va_end(ap);
        n += more < 0 ? 0 : (size_t)more < sizeof(line) - n - 1 ? (size_t)more : sizeof(line) - n - 2;
        for (size_t i = 0; i < n; i++) /* keeps the message on one line, whatever names it has */
                if ((unsigned char)line[i] < ' ')
                        line[i] = '?';
        line[n++] = '\n';
        (void)!write(2, line, n);
}
