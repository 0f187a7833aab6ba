/* edit: a user changes attributes of jobs that wait. What was sent along with a submit, or holds for its
 * request as a whole, cannot be changed; nor can jobs that have an attempt. */
#pragma once
#include "core/query.h"

struct request;

/* CORE_ACT_EDIT, for those of the members that are idle or held. *ret_affected counts them. 0; CORE_INVALID,
 * CORE_TOO_MANY with err: nothing has changed. */
int edit_members(struct core *c, struct request *r, const struct core_command *cmd, uint64_t *ret_affected,
                 struct err *err);
