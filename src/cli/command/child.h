/* child: a daemon that `drover up` keeps running.
 *
 * Children stand in a process group of their own, so that Ctrl-C reaches `drover up` alone, which stops them
 * in order; and they get SIGTERM from the kernel when `drover up` itself is killed. One that ends is started
 * again: the first time at once, then after pauses that double up to CHILD_PAUSE_MAX_MS; a minute's good run
 * forgets them.
 */
#pragma once
#include <sys/types.h>

#include "base/args.h"

#define CHILD_PAUSE_FIRST_MS 500
#define CHILD_PAUSE_MAX_MS   30000
#define CHILD_GOOD_MS        60000

struct child {
        const char *name; /* "droverd" */
        struct buf path;
        struct args argv;
        pid_t pid;           /* 0: not running */
        int status;          /* of waitpid, when it has ended */
        int64_t started_ms;  /* boot clock */
        int64_t start_at_ms; /* to be started then; 0: not to be started */
        int64_t pause_ms;    /* before the next start */
};

void child_deinit(struct child *c);
/* Starts it. 0 or -errno with err. */
int child_start(struct child *c, struct err *err);
/* Notes that it has ended, and when it is to be started again. */
void child_ended(struct child *c, int status);
/* "ended with status 1", "was killed by signal 9" */
void child_describe(const struct child *c, struct buf *out);
