/* partitions: queues of agents, by their names.
 */
#pragma once
#include "base/err.h"
#include "cli/terminal/cli.h"

/* Whether some agent has a queue of each of the names, parted by commas; NULL and "": yes. 0, or -EINVAL with
 * err. */
int partitions_check(struct cli *cli, const char *names, struct err *err);
