/* moment: times as Slurm's commands read and print them. Clock times are local.
 */
#pragma once
#include "base/buf.h"

/* Reads a time limit: "90", "90:30", "1:30:00", "2-12", "2-12:30", "2-12:30:15": minutes, hours, days;
 * rounded up to whole minutes. Returns 0 with the seconds (0: "UNLIMITED", "INFINITE" or "-1"), or -EINVAL.
 */
int moment_limit(struct str text, int64_t *ret_s);
/* Reads a point in time, in seconds since 1970: "now", "now+1hour", "today", "tomorrow", "midnight", "noon",
 * "fika", "teatime", "16:00", "4:00pm", "2026-01-31", "2026-01-31T12:34[:56]", "0131", "013126", "1/31",
 * "01/31/26-12:34". Returns 0, or -EINVAL. */
int moment_read(struct str text, int64_t now_s, int64_t *ret_s);

void moment_short(struct buf *out, int64_t s); /* 0:03, 1:02:03, 1-02:03:04 */
void moment_long(struct buf *out, int64_t s);  /* 00:00:03, 1-02:03:04 */
/* 2026-01-31T12:34:56; `otherwise` for 0 */
void moment_date(struct buf *out, int64_t at_s, const char *otherwise);
