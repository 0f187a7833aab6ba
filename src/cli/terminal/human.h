/* human: numbers as people read them. All append to a buf; none knows a locale. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

void human_duration(struct buf *out, int64_t ms); /* 0.4s 12s 3:07 1:02:03 3d02h; negative counts as 0 */
void human_bytes(struct buf *out, int64_t bytes); /* 17B 3.4K 128M 1.5G, powers of 1024 */
void human_count(struct buf *out, int64_t n, const char *one, const char *many); /* 1 job, 1000 jobs */
/* Local time: 09:14:05 today (of now_ms), else 11-21 09:14, else 2025-11-21; 0 is "-". */
void human_time(struct buf *out, int64_t at_ms, int64_t now_ms);
/* Text of others for a terminal: control characters, which could be commands to it, become '?', line ends
 * blanks. */
void human_safe(struct buf *out, struct str text);
/* Columns that UTF-8 text takes, one for each character. */
unsigned human_width(struct str text);

/* "90", "90s", "15m", "1h", "2d", "1w" as seconds; a bare number is seconds. 0, or -EINVAL with err. */
int human_to_seconds(struct str text, int64_t *ret_s, struct err *err);
