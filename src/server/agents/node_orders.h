/* node_orders: takes over the list of drained agents that an earlier version kept in a blob, before nodes
 * had records. The list becomes orders in the log, once. Core thread. */
#pragma once
#include "server/loop/server.h"

void node_orders_take_over(struct server *s); /* within a turn, after recovery */
