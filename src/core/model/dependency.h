/* dependency: the text form of what jobs wait for: jobs of other requests, or of their own, that end in some
 * way.
 *
 * The attribute DependsOn of a part names jobs of earlier requests, for all jobs of the part:
 *
 *     "7"           all jobs of request 7 succeed
 *     "7:any, 8.3"  all jobs of request 7 end in any way, and job 8.3 succeeds
 *     "9.0-99:each" the job at the same position among these 100 succeeds
 *
 * The edges of a submission name jobs of the request itself, by their numbers: "0-9>10;10>11,12:any". A job
 * that completes with exit code 0 succeeds; a removed job has failed. Edges have more conditions than
 * DependsOn, for graphs whose nodes are retried, skipped, or depend on more than an end:
 *
 *     "0>1:ok=4"     as ok; but if job 0 ends with exit code 4, job 1 is skipped
 *     "0>1:retry"    job 1 runs if job 0 has failed, and is skipped if job 0 has succeeded
 *     "0>1:retry=4"  the same; but if job 0 ended with exit code 4, job 1 never runs
 *     "0>1:post"     as any; the result of job 1 replaces that of job 0
 *     "0>1:held"     job 1 runs when job 0 is held, and is skipped if job 0 ends without being held
 *     "0>1:start"    job 1 runs when job 0 has started
 *     "0>1:stop"     job 1 does not wait; when job 0 has ended, job 1 is ended and completed
 *
 * A skipped job is completed without an attempt, and has succeeded.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#define DEPENDENCY_CODE_MAX 255 /* exit codes; values below zero are signals */

enum dependency_when {
        DEPENDENCY_OK,   /* all parents succeed */
        DEPENDENCY_FAIL, /* all parents end, and not all succeed */
        DEPENDENCY_ANY,  /* all parents end */
        DEPENDENCY_EACH, /* the parent at the same position succeeds; not in edges */
        /* in edges only: */
        DEPENDENCY_POST,  /* all parents end: the child's result replaces theirs */
        DEPENDENCY_RETRY, /* all parents end, and not all succeed; otherwise the child is skipped */
        DEPENDENCY_HELD,  /* a parent is held; when all end without that, the child is skipped */
        DEPENDENCY_START, /* all parents have started or ended */
        DEPENDENCY_STOP,  /* the child does not wait; when all parents have ended, it is ended */
};
const char *dependency_when_name(enum dependency_when w); /* "ok", "fail", "any", "each", ... */

struct dependency {
        uint64_t request;
        bool all;            /* all jobs of the request; false: those of [first, end) */
        uint32_t first, end; /* end is greater than first */
        enum dependency_when when;
};
/* Takes the next dependency off *rest. Returns 1; 0 when *rest is empty; -EINVAL with err. */
int dependency_next(struct str *rest, struct dependency *ret, struct err *err);

struct dependency_edge {
        struct str parents, children; /* ranges, see dependency_range_next */
        enum dependency_when when;
        bool has_code; /* only with DEPENDENCY_OK and DEPENDENCY_RETRY */
        int32_t code;
};
/* Takes the next edge off *rest. Returns 1; 0 when *rest is empty; -EINVAL with err. */
int dependency_edge_next(struct str *rest, struct dependency_edge *ret, struct err *err);
/* Takes the next range, [*ret_first, *ret_end), off *rest: "0-9,12". Returns 1; 0 when *rest is empty;
 * -EINVAL. */
int dependency_range_next(struct str *rest, uint32_t *ret_first, uint32_t *ret_end);
