/* actions: what is done to jobs: POST /v1/actions.
 */
#pragma once
#include "base/err.h"
#include "cli/terminal/cli.h"

struct action {
        const char *name; /* of the API */
        int64_t value;
        bool has_value;
        struct str members; /* more of the body, each with a comma in front; empty: none */
};
/* ACTION_NO_JOB: there is no such request. */
enum { ACTION_NOTHING = 1, ACTION_NO_JOB };
/* Of the jobs that `word` names (123, 123_4; NULL: all) and that fulfil the constraint. 0: something was
 * done; ACTION_NOTHING, with err if the server said why: none of them could be acted on, or there is none;
 * -EINVAL or -EIO with err. */
int action_do(struct cli *cli, const struct action *a, const char *word, struct str constraint,
              struct err *err);
/* The number of a signal ("USR1", "SIGUSR1", "10"); 0: there is none. */
int action_signal(struct str name);
