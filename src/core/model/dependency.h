/* dependency: what jobs wait for, as text: that jobs of other requests, or of their own, end in some way.
 *
 * The attribute DependsOn of a part names jobs of earlier requests, for all jobs of the part:
 *
 *     "7"           all jobs of request 7 succeed
 *     "7:any, 8.3"  all jobs of request 7 end, however, and job 8.3 succeeds
 *     "9.0-99:each" the job at the same place among these 100 succeeds
 *
 * The edges of a submission name jobs of the request itself, by their numbers: "0-9>10;10>11,12:any". A job
 * succeeds that completes with exit code 0; one that was removed has failed.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

enum dependency_when {
        DEPENDENCY_OK,   /* all of them succeed */
        DEPENDENCY_FAIL, /* all of them end, and not all succeed */
        DEPENDENCY_ANY,  /* all of them end */
        DEPENDENCY_EACH, /* the one at the same place among them succeeds; not in edges */
};
const char *dependency_when_name(enum dependency_when w); /* "ok", "fail", "any", "each" */

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
};
/* Takes the next edge off *rest. 1; 0: there is none; -EINVAL with err. */
int dependency_edge_next(struct str *rest, struct dependency_edge *ret, struct err *err);
/* Takes the next range, [*ret_first, *ret_end), off *rest: "0-9,12". 1; 0: there is none; -EINVAL. */
int dependency_range_next(struct str *rest, uint32_t *ret_first, uint32_t *ret_end);
