/* events: a job's user log (submit command `log`), read as it grows.
 *
 * The text form: each event begins with a line "005 (0007.000.000) 2026-11-21 09:14:05 Job terminated." and
 * ends with a line "...". An event that is not whole yet is left for the next call. Source: HTCondor manual,
 * "Managing a Job", "In the Job Event Log File".
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum event_number { EVENT_SUBMIT = 0, EVENT_EXECUTE = 1, EVENT_TERMINATED = 5, EVENT_ABORTED = 9 };

struct event {
        int number;
        int64_t cluster, proc, subproc;
        struct str text; /* of the whole event, without the line that ends it */
};

/* Takes the first whole event of *text, and steps over it. 1; 0: there is none yet; -EINVAL with err: this is
 * no such log. The event borrows from the text. */
int event_next(struct str *text, struct event *ret, struct err *err);
