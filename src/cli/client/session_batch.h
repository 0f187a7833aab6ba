/* session_batch: the jobs of a session in batch systems, under their ids there.
 *
 * While the server answers, these ids are recorded in the session file, and the scripts of the jobs. If no
 * server answers, the batch system's own commands list and end these jobs, with the caller's rights, on a
 * machine that has the commands.
 */
#pragma once
#include "cli/client/session_file.h"

/* Asks the server what batch systems call the session's jobs that have begun, at most a thousand that the
 * file does not have yet, and writes these into the file. An error is no matter: the next call asks again. */
void session_batch_note(struct cli *cli, const char *path, struct session_file *s);
/* Has the batch systems tell of the session's jobs, or end them. Returns an exit code. */
int session_batch_list(const struct session_file *s);
int session_batch_end(const struct session_file *s);
