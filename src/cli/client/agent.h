/* agent: what an administrator asks of one agent by the server's API. */
#pragma once
#include "cli/client/api.h"

/* POST /v1/agents/NAME/VERB; the body may be empty. 0 or an api_error with err; *ret is the caller's to
 * deinit either way. */
int agent_post(struct cli *cli, const char *name, const char *verb, struct str body, struct api_answer *ret,
               struct err *err);
/* Gives it no more jobs, for a reason (NULL: none is said), or jobs again. As agent_post. */
int agent_drain(struct cli *cli, const char *name, const char *reason, bool drains, struct api_answer *ret,
                struct err *err);
