/* wait: waits for jobs to finish, and shows their progress. */
#pragma once
#include "cli/terminal/cli.h"

struct wait {
        const char *ids;   /* "7,8.0-3" */
        int64_t timeout_s; /* -1: none */
        bool quiet;
        bool ignore_held; /* keeps waiting if all remaining jobs are held, until they are released */
        bool fail_fast;   /* ends with the first job that fails or is removed */
        void (*changed)(void *arg); /* called when something may have changed; may be NULL */
        void *arg;
};
/* A wait.changed that records the batch systems' ids of jobs that have begun (session_batch.h), at a limited
 * rate. */
struct wait_session {
        struct cli *cli;
        const char *path; /* NULL: there is no session file */
        int64_t next_ms;  /* boot clock: not before this; 0 at first */
};
void wait_note_session(void *arg);
/* Waits until all jobs are done, by long polling of the server. On a terminal (stderr) a line with a bar is
 * kept up to date, elsewhere a line is written now and then; the result goes to stdout. A server that
 * becomes unreachable is waited for. Ctrl-C only ends the waiting, and a message says so. Returns CLI_OK if
 * all jobs succeeded, CLI_FAILED, CLI_HELD if all remaining jobs are held or wait for held ones, CLI_USAGE
 * for an unknown id, CLI_TIMEOUT. */
int wait_for_jobs(struct cli *cli, const struct wait *w);
