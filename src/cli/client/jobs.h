/* jobs: a job and a request of the server's listings (docs/openapi.json, Job and Request) as a row of a
 * table. */
#pragma once
#include "cli/terminal/cli.h"

struct job_row {
        struct view id, owner, state, agent, queue, starts, exit_code, exit_signal, hold_reason, waits_for;
        struct view submitted_ms, entered_ms, started_ms, ended_ms, cmd, args;
};
void job_read(struct view job, struct job_row *ret); /* missing fields count as empty */
struct request_row {
        struct view id, owner, submitted_ms, eta_end_ms, eta_end_most_ms, jobs, idle, running, held,
                completed, failed, removed, left, cmd, args, batch;
};
void request_read(struct view request, struct request_row *ret); /* the same */
/* Appends the request's batch name, or else its program's file name. */
void request_name(const struct request_row *r, struct buf *out);
void job_command(const struct job_row *j, struct buf *out); /* program's file name and arguments */
void job_outcome(const struct job_row *j, struct buf *out); /* appends nothing if the job is not over */
enum table_colour job_colour(struct view state);
bool job_has_failed(const struct job_row *j); /* completed, but with an exit code or a signal that says so */
/* Adds a cell: the state in its colour, or "failed". */
void job_add_state(struct table *t, const struct job_row *j);
/* Returns whether a job in this state waits for a place, whether one is reserved for it or not. */
bool job_is_idle(struct view state);
bool job_has_begun(struct view state); /* the job is at an agent, and its program was started */

/* Appends the ids of words such as "7" and "8.0-3,8.5", checked, as "7,8.0-3,8.5". Returns 0 or, after an
 * error was printed, CLI_USAGE. */
int jobs_ids(const char *const *words, size_t count, struct buf *out);
/* Appends "7.42" for a word that means exactly one job: 7.42, or 7 if request 7 has one job only (the server
 * is asked). Returns 0 or, after an error was printed, an exit code. */
int jobs_one(struct cli *cli, const char *word, struct buf *out);
/* Like jobs_one, but several jobs are no error if ret_several is not NULL: *ret_several is then true, and
 * the word itself (7, or 7.0-99) is appended. */
int jobs_one_or_several(struct cli *cli, const char *word, bool *ret_several, struct buf *out);
struct api_answer;
/* Calls GET /v1/jobs/ID/what for exactly one job: 7.42, or 7 if request 7 has one job only. Returns 0, or an
 * exit code after an error was printed. */
int jobs_get(struct cli *cli, const char *word, const char *what, struct api_answer *ret);
