#include "base/system/log.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"

static const char *program = "drover";
static _Atomic(enum log_level) level_max = LOG_INFO;
static const char *const names[] = {"error", "warn", "info", "debug"};

void log_init(const char *name, enum log_level max)
{
        program = name;
        level_max = max;
}

void log_level_set(enum log_level max)
{
        level_max = max;
}

int log_level_parse(const char *name, enum log_level *ret)
{
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(names[i], name) == 0) {
                        *ret = (enum log_level)i;
                        return 0;
                }
        return -EINVAL;
}

bool log_on(enum log_level level)
{
        return level <= level_max;
}

void log_line(enum log_level level, const char *fmt, ...)
{
        int64_t now = clock_wall_ms();
        time_t s = (time_t)(now / 1000);
        struct buf b;
        struct tm tm;
        char when[32];
        va_list ap;
        ssize_t done;

        if (!log_on(level))
                return;
        buf_init(&b, 8192);
        gmtime_r(&s, &tm);
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
        buf_printf(&b, "%s.%03dZ %s %s ", when, (int)(now % 1000), names[level], program);
        va_start(ap, fmt);
        buf_vprintf(&b, fmt, ap);
        va_end(ap);
        b.max = 0;
        b.overflow = false;
        buf_char(&b, '\n');
        do
                done = write(STDERR_FILENO, b.p, b.n);
        while (done < 0 && errno == EINTR);
        buf_deinit(&b);
}

char *log_text(char *room, size_t size, struct str text)
{
        size_t n = 0;

        for (size_t i = 0; i < text.n && n + 5 < size; i++) {
                unsigned char c = (unsigned char)text.p[i];

                if (c == '"' || c == '\\') {
                        room[n++] = '\\';
                        room[n++] = (char)c;
                } else if (c < 0x20 || c == 0x7f) {
                        n += (size_t)snprintf(room + n, size - n, "\\x%02x", c);
                } else {
                        room[n++] = (char)c;
                }
        }
        room[n] = '\0';
        return room;
}
