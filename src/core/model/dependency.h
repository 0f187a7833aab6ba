/* dependency: what jobs wait for, as text: that jobs of other requests, or of their own, end in some way.
 *
 * The attribute DependsOn of a part names jobs of earlier requests, for all jobs of the part:
 *
 *     "7"           all jobs of request 7 succeed
 *     "7:any, 8.3"  all jobs of request 7 end, however, and job 8.3 succeeds
 *     "9.0-99:each" the job at the same place among these 100 succeeds
 *
 * The edges of a submission name jobs of the request itself, by their numbers: "0-9>10;10>11,12:any". A job
 * succeeds that completes with exit code 0; one that was removed has failed. Edges have more conditions than
 * DependsOn, for graphs whose nodes are tried again, are left out or go along with others:
 *
 *     "0>1:ok=4"     as ok; but when job 0 ends with exit code 4, job 1 is skipped
 *     "0>1:retry"    when job 0 has failed job 1 runs; when it has succeeded job 1 is skipped
 *     "0>1:retry=4"  the same; but when it ended with exit code 4, job 1 never runs
 *     "0>1:post"     as any; how job 1 ends stands for how job 0 did
 *     "0>1:held"     when job 0 is held job 1 runs; when it ends without that job 1 is skipped
 *     "0>1:start"    when job 0 was started job 1 runs
 *     "0>1:stop"     job 1 does not wait; when job 0 has ended job 1 is ended, and is completed
 *
 * A job that is skipped is completed without an attempt, and has succeeded.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#define DEPENDENCY_CODE_MAX 255 /* of exit codes; below zero: of signals */

enum dependency_when {
        DEPENDENCY_OK,   /* all of them succeed */
        DEPENDENCY_FAIL, /* all of them end, and not all succeed */
        DEPENDENCY_ANY,  /* all of them end */
        DEPENDENCY_EACH, /* the one at the same place among them succeeds; not in edges */
        /* in edges only: */
        DEPENDENCY_POST,  /* all of them end: how it ends stands for them */
        DEPENDENCY_RETRY, /* all of them end, and not all succeed; else it is skipped */
        DEPENDENCY_HELD,  /* one of them is held; when all end without that it is skipped */
        DEPENDENCY_START, /* each of them was started, or has ended */
        DEPENDENCY_STOP,  /* it is not waited for; when all of them have ended it is ended */
};
const char *dependency_when_name(enum dependency_when w); /* "ok", "fail", "any", "each", ... */

struct dependency {
        uint64_t request;
        bool all;            /* all of its jobs; else those of [first, end) */
        uint32_t first, end; /* end is greater than first */
        enum dependency_when when;
};
/* Takes the next one off *rest. 1; 0: there is none; -EINVAL with err. */
int dependency_next(struct str *rest, struct dependency *ret, struct err *err);

struct dependency_edge {
        struct str parents, children; /* ranges, for dependency_range_next */
        enum dependency_when when;
        bool has_code; /* of DEPENDENCY_OK and DEPENDENCY_RETRY */
        int32_t code;
};
/* Takes the next edge off *rest. 1; 0: there is none; -EINVAL with err. */
int dependency_edge_next(struct str *rest, struct dependency_edge *ret, struct err *err);
/* Takes the next range, [*ret_first, *ret_end), off *rest: "0-9,12". 1; 0: there is none; -EINVAL. */
int dependency_range_next(struct str *rest, uint32_t *ret_first, uint32_t *ret_end);
