/* wait: waiting for jobs to finish, with what shows how far they are. */
#pragma once
#include "cli/terminal/cli.h"

struct wait {
        const char *ids;   /* "7,8.0-3" */
        int64_t timeout_s; /* -1: none */
        bool quiet;
        bool ignore_held; /* waits on when all that is left is held: somebody or something will release it */
        bool fail_fast;   /* ends with the first job that fails or is removed */
        void (*changed)(void *arg); /* called when something may have changed; NULL: nobody is told */
        void *arg;
};
/* Long-polls the server until all are done. On a terminal (stderr) a line with a bar is kept up to date,
 * elsewhere a line is written now and then; the end goes to stdout. A server that goes away is waited for.
 * Ctrl-C ends the waiting only, and says so. Returns CLI_OK when all succeeded, CLI_FAILED, CLI_HELD when all
 * that is left is held, CLI_USAGE for an unknown id, CLI_TIMEOUT. */
int wait_for_jobs(struct cli *cli, const struct wait *w);
