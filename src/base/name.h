/* name: which texts may be the name of a thing, wherever such a name comes from.
 *
 * Names stand in logs of users, in ads, in answers of the API and in the names of files as they are, so a
 * name that this refuses must not get into the server's state. Pure.
 */
#pragma once
#include "base/str.h"

#define NAME_QUEUE_MAX 64
#define NAME_QUEUE_IS  "1 to 64 letters, digits and -_.+"

bool name_is_queue(struct str name); /* of an agent: NAME_QUEUE_IS */
/* At most `max` bytes of valid UTF-8 (RFC 3629) without control characters (C0, DEL, C1): what a host, a file
 * system's domain or a program calls itself. The empty text is one. */
bool name_is_line(struct str text, size_t max);
