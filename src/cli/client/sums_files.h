/* sums_files: files that a submit of a description of SUMS or RDL leaves in the user's folders, or of any
 * description with --session.
 *
 * The report (schedREQUESTID.report) is always written: the jobs, their files and where these can be
 * processed, which queues would take them and why, the command, and the warnings. A simulated submit also
 * leaves each job's list of files and a script that runs the job in the same way (schedREQUESTID_N.list,
 * .sh).
 */
#pragma once
#include "cli/client/submit.h"

#define SUMS_SCRIPTS_MAX 10000u /* jobs of a simulated submit that get files of their own */

/* Writes the files. id: number of the request at the server; 0: the submit was simulated. Returns 0, or an
 * exit code after an error was printed. */
int sums_files_write(const struct submit *s, int64_t id);
/* Append the path of the report, and of the session file, which the caller writes. */
void sums_files_report(const struct submit *s, struct buf *out);
void sums_files_session(const struct submit *s, struct buf *out);
