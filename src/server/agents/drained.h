/* drained: which agents are given no more jobs, kept over restarts: a blob of the store, written with the
 * turn's batch. The core acts on it (core_agent_drain). Core thread. */
#pragma once
#include "server/loop/server.h"

void drained_restore(struct server *s);
/* why NULL: the agent is given jobs again. Is kept when the turn's batch is durable. */
void drained_set(struct server *s, const char *agent, const char *why);
