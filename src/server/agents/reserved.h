/* reserved: advance reservations of agents' queues, sent to the agents, which may make them in their batch
 * systems. Core thread. Those for single jobs are not sent. */
#pragma once
#include "server/agents/agents.h"

void reserved_changed(struct server *s); /* a reservation was made, changed or ended in this turn */
void reserved_flush(struct server *s);   /* sends the lists to agents that have one or had one */
/* Sends the list to an agent that has connected, also an empty one: what was left behind in its batch systems
 * is removed then. NULL is fine. */
void reserved_greet(struct server *s, struct agent *a);
