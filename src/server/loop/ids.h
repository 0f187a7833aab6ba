/* ids: the names that people give to requests and jobs: "7", "7.42", "7.0-99", and lists of them with commas.
 */
#pragma once
#include "base/err.h"
#include "base/set.h"
#include "core/model/submission.h"

#define IDS_MAX     10000
#define IDS_MEMBERS SUBMISSION_MEMBERS_MAX /* member numbers are below this */

struct id {
        uint64_t request;
        bool some;          /* only `members`; else all of the request */
        struct set members; /* owned */
};
struct ids {
        struct id *items;
        size_t count, cap;
};
void ids_deinit(struct ids *ids);
#define IDS_CLEANUP __attribute__((cleanup(ids_deinit)))

/* Adds what the text names. Several ids of one request stay several. 0, -EINVAL or -E2BIG with err. */
int ids_parse(struct ids *ids, struct str text, struct err *err);
/* Merges the entries of each request into one, in the order of each request's first entry. */
void ids_merge(struct ids *ids);
/* Reads one job id, "7.42". Returns 0 or -EINVAL. */
int ids_parse_job(struct str text, uint64_t *ret_request, uint32_t *ret_member);
