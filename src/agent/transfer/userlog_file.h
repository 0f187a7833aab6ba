/* userlog_file: appends events to a job's log, with the rights of this process.
 *
 * The file is opened for appending only, and made if it is missing, with its folder. Anything but a regular
 * file is refused, a link too, so that a name put there by somebody else leads nowhere; so is a path into a
 * folder that is hidden from jobs. A text is appended whole or not at all: after a partial write the file is
 * truncated to its old size. The file is not flushed to the disk.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "base/system/hidden.h"

struct userlog_file_result {
        bool again; /* after an error: a later attempt may succeed */
        bool added; /* the last event was not there before */
};
/* Appends the text: events, each ended by a line "..."; an event that begins with '<' ends with "</c>", one
 * that begins with '{' with "}". maybe_there: events that are already near the file's end are left out, and
 * an incomplete event at the end is completed. Writing to /dev/null always succeeds. Returns 0, or -errno
 * with err. *ret is written in both cases. */
int userlog_file_append(const struct hidden *hidden, const char *path, struct str text, bool maybe_there,
                        struct userlog_file_result *ret, struct err *err);
