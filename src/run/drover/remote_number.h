/* remote_number: reads numbers from another server's JSON, where they may have any size or type. */
#pragma once
#include <stdint.h>

#include "base/format/json_read.h"

/* Returns the member `name` of an object, truncated to an integer and clamped to [least, most]; 0, clamped
 * likewise, when it is missing or not a number. `o` may be NULL. */
int64_t remote_number_within(const json_t *o, const char *name, int64_t least, int64_t most);
/* Returns a time or duration in milliseconds from a member in units of `unit_ms` (1: milliseconds, 1000:
 * seconds). 0 when it is missing, not a number, or negative; at most REMOTE_TIME_MAX. */
#define REMOTE_TIME_MAX UINT64_C(253402300799999) /* the end of the year 9999 */
uint64_t remote_number_time(const json_t *o, const char *name, unsigned unit_ms);
