/* groups: the columns by which reports sum: user, account, place, site and month.
 *
 * A group's key is the values of the chosen columns, in the order of enum group_by, separated by 0x1f. Sorted
 * keys are sorted by the first column, then by the second. */
#pragma once
#include "server/calls/call.h"

enum group_by { BY_USER, BY_ACCOUNT, BY_PLACE, BY_SITE, BY_MONTH, BYS };

struct group_values {
        struct str user, account, place, site; /* empty: written as - */
        int64_t at_ms;                         /* Unix milliseconds; the month is in UTC */
};

/* I/O thread: reads the query parameter `by`. Returns false if it names another column; the call has then
 * ended. */
bool groups_by(struct call *c, bool ret[static BYS]);
/* Appends the key of the chosen columns. */
void groups_key(struct buf *out, const bool by[static BYS], const struct group_values *v);
/* Writes the columns of a key as members of an object. */
void groups_write(struct json *j, const bool by[static BYS], struct str key);
