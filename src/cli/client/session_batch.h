/* session_batch: jobs of a session in batch systems, by the names that these have for them.
 *
 * While the server answers, the names are put into the session file. Where the server is gone for good, the
 * batch system's own commands tell of these jobs and end them, as the caller, on a machine that has them.
 */
#pragma once
#include "cli/client/session_file.h"

/* Asks the server what batch systems call the session's jobs that have begun, at most a thousand that the
 * file does not have yet, and writes these into the file. An error is no matter: the next call asks again. */
void session_batch_note(struct cli *cli, const char *path, struct session_file *s);
/* Has the batch systems tell of the session's jobs, or end them. Returns an exit code. */
int session_batch_list(const struct session_file *s);
int session_batch_end(const struct session_file *s);
