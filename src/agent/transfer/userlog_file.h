/* userlog_file: appending events to a job's log, with the rights that this process has.
 *
 * The file is opened for appending only and made if it is not there; what is no regular file is refused, a
 * link too, so that a name put there by somebody else leads nowhere; so is a path into a folder that is
 * hidden from jobs. Whole texts reach it, or nothing: what was written of a text that did not fit is cut off
 * again. It is not flushed to the disk.
 */
#pragma once
#include "base/err.h"
#include "base/hidden.h"
#include "base/str.h"

struct userlog_file_result {
        bool again; /* after an error: a later try may help */
        bool added; /* the last event was not there before */
};
/* Appends the text: events, each ended by a line "..."; one that begins with '<' by "</c>", with '{' by "}".
 * maybe_there: those that stand near the file's end are left out, and the one that it ends in the middle of
 * is made whole. /dev/null takes everything. 0; or -errno with err. *ret is written in both cases. */
int userlog_file_append(const struct hidden *hidden, const char *path, struct str text, bool maybe_there,
                        struct userlog_file_result *ret, struct err *err);
