/* launches: programs that the nodes of a parallel job start on each other, as MPI's launchers do by rsh.
 *
 * The program asks its agent, the agent asks here (Chirp of wire/drover.proto). The core says whether that
 * agent has the attempt and which attempt the other node is; then the other node's agent runs the program
 * beside its attempt, as for `drover exec` (streams.h), and its answers are passed back. Core thread.
 */
#pragma once
#include "server/agents/command.h"
#include "server/loop/server.h"

struct launches;
struct launches *launches_new(void);
void launches_free(struct launches *x); /* NULL is fine */

/* Handles a call with CHIRP_LAUNCH or CHIRP_LAUNCHED of the agent. */
void launches_ask(struct server *s, const struct command *c, const struct agent *a);
/* The agent's session is over: its calls are forgotten. */
void launches_agent_gone(struct server *s, const char *agent);
