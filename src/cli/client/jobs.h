/* jobs: a job of the server's listings (docs/openapi.json, Job) as a row of a table. */
#pragma once
#include "cli/terminal/cli.h"

struct job_row {
        struct view id, owner, state, agent, queue, starts, exit_code, exit_signal, hold_reason, waits_for;
        struct view submitted_ms, entered_ms, started_ms, ended_ms, cmd, args;
};
void job_read(struct view job, struct job_row *ret);        /* fields that are missing are none */
void job_command(const struct job_row *j, struct buf *out); /* program's file name and arguments */
void job_outcome(const struct job_row *j,
                 struct buf *out); /* "exit 1", "signal 9"; nothing for what isn't over */
enum table_colour job_colour(struct view state);
bool job_has_begun(struct view state); /* it is at an agent, and its program was started */

/* Appends the ids of words such as "7" and "8.0-3,8.5", checked, as "7,8.0-3,8.5". Returns 0 or, after an
 * error was printed, CLI_USAGE. */
int jobs_ids(const char *const *words, size_t count, struct buf *out);
/* Exactly one job: 7.42, or 7 when request 7 has one job only, for which the server is asked. Appends "7.42".
 * Returns 0 or, after an error was printed, an exit code. */
int jobs_one(struct cli *cli, const char *word, struct buf *out);
struct api_answer;
/* GET /v1/jobs/ID/what of exactly one job: 7.42, or 7 when request 7 has one job only. Returns 0; or an exit
 * code, after an error was printed.
 */
int jobs_get(struct cli *cli, const char *word, const char *what, struct api_answer *ret);
