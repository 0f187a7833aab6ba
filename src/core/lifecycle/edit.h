/* edit: changes attributes of waiting jobs for a user. Jobs with an attempt cannot be edited, nor can
 * attributes that the submit sent along or that hold for the request as a whole.
 */
#pragma once
#include "core/query.h"

struct request;

/* Returns why nobody may change this attribute, with its usual spelling in *ret_name; NULL: it may be
 * changed.
 */
const char *edit_refused(struct str name, struct str *ret_name);
/* Carries out CORE_ACT_EDIT for those of the members that are idle or held; *ret_affected counts them.
 * Returns 0; CORE_INVALID or CORE_TOO_MANY with err: nothing has changed. */
int edit_members(struct core *c, struct request *r, const struct core_command *cmd, uint64_t *ret_affected,
                 struct err *err);
