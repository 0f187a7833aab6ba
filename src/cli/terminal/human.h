/* human: numbers and times in readable form. All calls append to a buf and ignore the locale. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

void human_duration(struct buf *out, int64_t ms); /* 0.4s 12s 3:07 1:02:03 3d02h; negative counts as 0 */
/* 3:07-5:10; one of them if they read the same or to_ms is not later */
void human_range(struct buf *out, int64_t from_ms, int64_t to_ms);
void human_bytes(struct buf *out, int64_t bytes); /* 17B 3.4K 128M 1.5G, powers of 1024 */
void human_count(struct buf *out, int64_t n, const char *one, const char *many); /* 1 job, 1000 jobs */
/* Appends a local time: 09:14:05 on the day of now_ms, else 11-21 09:14, else 2025-11-21; "-" for 0. */
void human_time(struct buf *out, int64_t at_ms, int64_t now_ms);
/* Appends untrusted text for a terminal: control characters, which the terminal could act on, become '?',
 * line ends become blanks. */
void human_safe(struct buf *out, struct str text);
/* Returns the columns that UTF-8 text takes, one for each character. */
unsigned human_width(struct str text);

/* Reads a duration, "90", "90s", "15m", "1h", "2d", "1w", in seconds; a bare number is seconds. Returns 0,
 * or -EINVAL with err. */
int human_to_seconds(struct str text, int64_t *ret_s, struct err *err);
/* Reads a time in Unix milliseconds: "2026-11-24", "2026-11-24T09:30", "2026-11-24 09:30:00" or "09:30"
 * (today) in this machine's time zone, "today" and "yesterday" as they begin, "now", or "+2d" and "-2d"
 * relative to now. Returns 0, or -EINVAL with err. */
int human_to_time(const char *text, int64_t now_ms, int64_t *ret_ms, struct err *err);
