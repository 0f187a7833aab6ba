/* draft: a request in preparation, which is in no list, map or limit yet.
 *
 * A submission is loaded and put into classes in slices, between which other calls may be made. The draft is
 * then accepted (core_draft_submit), or used for a quote (quote.h), or freed. A draft has its number from the
 * beginning, since macros may refer to it; later requests have higher numbers and may be accepted earlier.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct core_draft;

enum core_draft_use {
        CORE_DRAFT_SUBMIT, /* a submission whose uuid is known is that request, and nothing is made */
        CORE_DRAFT_QUOTE,  /* never accepted; without a number */
};
/* Begins a draft. `s` must have passed submission_check, and is borrowed until the draft is freed. Returns 0;
 * CORE_INVALID, CORE_FORBIDDEN, CORE_CONFLICT or CORE_TOO_MANY with err. */
int core_draft_new(struct core *c, const struct submission *s, enum core_draft_use use,
                   struct core_draft **ret, struct err *err);
/* Works for some milliseconds. *ret_more: whether there is more to do. Returns 0; CORE_INVALID with err: the
 * request cannot be accepted. The caller frees the draft in any case. */
int core_draft_some(struct core_draft *d, bool *ret_more, struct err *err);
/* Accepts a draft with nothing left to do; no other call of the core may have been made since its last slice.
 * Returns as core_submit does. The caller frees the draft. */
int core_draft_submit(struct core_draft *d, uint64_t *ret_request, bool *ret_existing, struct err *err);
/* The present or future number of the request. */
uint64_t core_draft_number(const struct core_draft *d, bool *ret_existing);
void core_draft_free(struct core_draft *d); /* NULL is fine; core_free frees the remaining drafts */

/* Checks that the part's template makes sense for its jobs; late attributes are checked with the first
 * member. Returns 0, or -EINVAL with err. */
int draft_check_part(struct core *c, const struct request *r, const struct part *p, struct err *err);
/* NULL: the request already exists, or was accepted. */
struct request *draft_request(const struct core_draft *d);
struct core *draft_core(const struct core_draft *d);
