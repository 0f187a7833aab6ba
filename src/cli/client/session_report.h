/* session_report: what has become of the jobs of a session: their states, places and results, why they were
 * held or still wait. */
#pragma once
#include "cli/client/session_file.h"

#define SESSION_REPORT_JOBS 10000u /* jobs of a request that are listed */

/* Append the states of the session's requests and of each of their jobs, as text, or as the elements of a
 * JSON array. The session's server must have been selected (session_file_use). Return 0, or an exit code
 * after an error was printed. */
int session_report_text(struct cli *cli, const struct session_file *s, struct buf *out);
int session_report_json(struct cli *cli, const struct session_file *s, struct buf *out);
/* Reads the report that the submit left, without what was added since. Returns 0; -ENODATA with err: the
 * session has no report of its own; or the error of reading it. */
int session_report_read(const struct session_file *s, struct buf *ret, struct err *err);
/* Writes the report of the submit again, followed by `now`, which session_report_text has made. Only a file
 * that begins as the report of this session is written to; a session without one has nothing written. */
void session_report_write(const struct session_file *s, struct str now);
/* Reads the session file, asks the server, and does this. */
void session_report_keep(struct cli *cli, const char *session);
