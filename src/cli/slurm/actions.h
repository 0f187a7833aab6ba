/* actions: actions on jobs: POST /v1/actions. */
#pragma once
#include "base/err.h"
#include "cli/terminal/cli.h"

struct action {
        const char *name; /* name in the API */
        int64_t value;
        bool has_value;
        struct str members; /* further members of the body, each preceded by a comma; empty: none */
};
/* ACTION_NO_JOB: there is no such request. */
enum { ACTION_NOTHING = 1, ACTION_NO_JOB };
/* Acts on the jobs that `word` names (123, 123_4; NULL: all) and that meet the constraint. Returns 0 if the
 * action was applied to some job; ACTION_NOTHING if no job could be acted on or there is none, with err if
 * the server gave a reason; ACTION_NO_JOB; -EINVAL or -EIO with err. */
int action_do(struct cli *cli, const struct action *a, const char *word, struct str constraint,
              struct err *err);
/* Returns the number of a signal ("USR1", "SIGUSR1", "10"); 0: there is none. */
int action_signal(struct str name);
