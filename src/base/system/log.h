/* log: one line per event on stderr, for daemons. Libraries return errors, they do not log.
 *
 *   2026-01-02T03:04:05.678Z info droverd msg="agent joined" name=n1
 *
 * The caller writes `key=value` pairs; log_text() makes a quoted value of anything. Lines are written with
 * one write() and never interleave. Thread-safe.
 */
#pragma once
#include "base/buf.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_init(const char *program, enum log_level max);     /* program is kept, not copied */
void log_level_set(enum log_level max);                     /* any thread */
int log_level_parse(const char *name, enum log_level *ret); /* error warn info debug; 0 or -EINVAL */
bool log_on(enum log_level level);
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Copies `text` into `room` with quotes, backslashes and control bytes escaped, for key="..."; the text is
 * cut if it does not fit. Returns room. */
char *log_text(char *room, size_t size, struct str text);
#define LOG_TEXT(text) log_text((char[256]){0}, 256, (text))

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                                                                       \
        do {                                                                                                 \
                if (log_on(LOG_DEBUG))                                                                       \
                        log_line(LOG_DEBUG, __VA_ARGS__);                                                    \
        } while (0)
