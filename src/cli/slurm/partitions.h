/* partitions: checks partition names against the queues of agents. */
#pragma once
#include "base/err.h"
#include "cli/terminal/cli.h"

/* Checks that some agent has a queue for each of the names, separated by commas; NULL and "" pass. Returns
 * 0, or -EINVAL with err. */
int partitions_check(struct cli *cli, const char *names, struct err *err);
