/* name: validation of names, wherever they come from.
 *
 * Names are written unescaped to user logs, ads, API answers and file names, so a
 * name that is refused here must not get into the server's state. Pure.
 */
#pragma once
#include "base/str.h"

#define NAME_QUEUE_MAX 64
#define NAME_QUEUE_IS  "1 to 64 letters, digits and -_.+"

bool name_is_queue(struct str name); /* name of an agent's queue: NAME_QUEUE_IS */
/* Returns whether the text is at most `max` bytes of valid UTF-8 (RFC 3629) without control characters (C0,
 * DEL, C1), as the names of hosts, file system domains and programs must be. The empty text is. */
bool name_is_line(struct str text, size_t max);
