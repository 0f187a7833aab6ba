/* events: reads a job's user log (submit command `log`) as it grows.
 *
 * Each event may be in any of the three formats, recognised by its beginning. In text format it begins with
 * a line "005 (0007.000.000) 2026-11-21 09:14:05 Job terminated." (or 11/21, with a fraction of a second,
 * with a Z) and ends with a line "...". In XML it is a ClassAd, <c> … </c>, and surrounding text is skipped.
 * In JSON it is an object, on one line or several. An incomplete event is left for the next call. Source:
 * HTCondor manual, "Managing a Job", "In the Job Event Log File", and EVENT_LOG_FORMAT_OPTIONS.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum event_number { EVENT_SUBMIT = 0, EVENT_EXECUTE = 1, EVENT_TERMINATED = 5, EVENT_ABORTED = 9 };

struct event {
        int number;
        int64_t cluster, proc, subproc;
        char host[128];  /* where it executes, "" if the event does not say */
        struct str text; /* unchanged text of the whole event, its end included */
};

/* Takes the first complete event from *text, and moves *text past it. Returns 1; 0: there is none yet;
 * -EINVAL with err: the text is not a user log. The event borrows from the text. */
int event_next(struct str *text, struct event *ret, struct err *err);
