/* remote_number: numbers in what another server says, which may be of any size, or no numbers at all. */
#pragma once
#include <stdint.h>

#include "base/json_read.h"

/* The member `name` of an object as a whole number, cut, and at least `least` and at most `most`; 0 within
 * these when it is not there, or no number. `o` may be NULL. */
int64_t remote_number_within(const json_t *o, const char *name, int64_t least, int64_t most);
/* A time or a duration in milliseconds: the member in units of so many (1: milliseconds, 1000: seconds). 0
 * when it is none, or negative; at most REMOTE_TIME_MAX. */
#define REMOTE_TIME_MAX UINT64_C(253402300799999) /* the end of the year 9999 */
uint64_t remote_number_time(const json_t *o, const char *name, unsigned unit_ms);
