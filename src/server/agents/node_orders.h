/* node_orders: what a server of before nodes had records kept of them: a blob with the agents that are
 * drained. It becomes orders of the log, once. Core thread. */
#pragma once
#include "server/loop/server.h"

void node_orders_take_over(struct server *s); /* in a turn, after recovery */
