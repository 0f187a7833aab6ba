/* events: a job's user log (submit command `log`), read as it grows.
 *
 * Each event may be in any of the three forms, found out by how it begins. In text it begins with a line
 * "005 (0007.000.000) 2026-11-21 09:14:05 Job terminated." (or 11/21, with a part of a second, with a Z) and
 * ends with a line "...". In XML it is a ClassAd, <c> … </c>, what stands around them is stepped over; in
 * JSON it is an object, on one line or several. An event that is not whole yet is left for the next call.
 * Source: HTCondor manual, "Managing a Job", "In the Job Event Log File", and EVENT_LOG_FORMAT_OPTIONS.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum event_number { EVENT_SUBMIT = 0, EVENT_EXECUTE = 1, EVENT_TERMINATED = 5, EVENT_ABORTED = 9 };

struct event {
        int number;
        int64_t cluster, proc, subproc;
        char host[128];  /* where it executes, "" if the event does not say */
        struct str text; /* of the whole event as it stands, its end included */
};

/* Takes the first whole event of *text, and steps over it. 1; 0: there is none yet; -EINVAL with err: this is
 * no such log. The event borrows from the text. */
int event_next(struct str *text, struct event *ret, struct err *err);
