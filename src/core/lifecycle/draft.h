/* draft: a request that is being made, and that nobody else knows of: no list, map or limit has it.
 *
 * What is submitted is loaded and put into classes in slices, between which the world may go on; then it is
 * accepted (core_draft_submit), or a quote is made of it (quote.h), or it is forgotten. It has its number
 * from the beginning, since macros may look at it: requests that come meanwhile have higher ones and may be
 * accepted before it.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct core_draft;

enum core_draft_use {
        CORE_DRAFT_SUBMIT, /* with a uuid that is known it is that request, and nothing is to be made */
        CORE_DRAFT_QUOTE,  /* never accepted: it has no number */
};
/* `s` has passed submission_check, and is borrowed until the draft is free. 0; CORE_INVALID, CORE_FORBIDDEN,
 * CORE_CONFLICT, CORE_TOO_MANY with err. */
int core_draft_new(struct core *c, const struct submission *s, enum core_draft_use use,
                   struct core_draft **ret, struct err *err);
/* Some milliseconds of it. Sets *ret_more when there is more. 0; CORE_INVALID with err: it would not be
 * accepted; it is left to be freed. */
int core_draft_some(struct core_draft *d, bool *ret_more, struct err *err);
/* There is no more, and nothing else was done to the core since: accepts it. As core_submit; the draft is
 * left to be freed. */
int core_draft_submit(struct core_draft *d, uint64_t *ret_request, bool *ret_existing, struct err *err);
uint64_t core_draft_number(const struct core_draft *d, bool *ret_existing); /* that it has, or would have */
void core_draft_free(struct core_draft *d); /* NULL is fine; core_free frees those that are left */

/* Can its jobs mean what the part's template says? Late attributes are tried with its first member. 0, or
 * -EINVAL with err. */
int draft_check_part(struct core *c, const struct request *r, const struct part *p, struct err *err);
struct request *draft_request(const struct core_draft *d); /* NULL: it exists already, or was accepted */
struct core *draft_core(const struct core_draft *d);
