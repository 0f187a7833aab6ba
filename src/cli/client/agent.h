/* agent: an administrator's calls about one agent, through the server's API. */
#pragma once
#include "cli/client/api.h"

/* Calls POST /v1/agents/NAME/VERB; the body may be empty. Returns 0, or an api_error with err. *ret is the
 * caller's to deinit in both cases. */
int agent_post(struct cli *cli, const char *name, const char *verb, struct str body, struct api_answer *ret,
               struct err *err);
/* Prints a warning if there are agents but none of them has a queue with this name. */
void agent_check_queue(struct cli *cli, const char *name);
/* Drains the agent (drains true: it gets no more jobs; reason NULL: none is stated), or lets it take jobs
 * again. Returns as agent_post does. */
int agent_drain(struct cli *cli, const char *name, const char *reason, bool drains, struct api_answer *ret,
                struct err *err);
