/* child: a daemon that `drover up` keeps running.
 *
 * Each child is in a process group of its own, so that Ctrl-C reaches only `drover up`, which stops the
 * children in order. The kernel sends them SIGTERM if `drover up` itself is killed. A child that ends is
 * started again: the first time at once, then after pauses that double up to CHILD_PAUSE_MAX_MS; a minute's
 * run resets the pause.
 */
#pragma once
#include <sys/types.h>

#include "base/job/args.h"

#define CHILD_PAUSE_FIRST_MS 500
#define CHILD_PAUSE_MAX_MS   30000
#define CHILD_GOOD_MS        60000

struct child {
        const char *name; /* "droverd" */
        struct buf path;
        struct args argv;
        pid_t pid;           /* 0: not running */
        int status;          /* status from waitpid, after it has ended */
        int64_t started_ms;  /* boot clock */
        int64_t start_at_ms; /* time of the next start; 0: none */
        int64_t pause_ms;    /* pause before the next start */
};

void child_deinit(struct child *c);
/* Starts the child. Returns 0, or -errno with err. */
int child_start(struct child *c, struct err *err);
/* Records that the child has ended, and sets the time of its next start. */
void child_ended(struct child *c, int status);
/* Appends how the child ended: "ended with status 1", "was killed by signal 9". */
void child_describe(const struct child *c, struct buf *out);
