/* chirps: what programs of running attempts ask for: attributes of their jobs, lines for the jobs' logs, and
 * files beneath the folders that the jobs were submitted from.
 *
 * The core says whether the agent that passes a call on has the attempt, and whether the job's author allows
 * calls at all. Attributes and lines are events, and answered when they are durable. A file is an agent's to
 * touch, one that sees the folder and runs the owner's jobs, as for user logs; its answer is passed back,
 * once. Core thread.
 */
#pragma once
#include "server/agents/command.h"
#include "server/loop/server.h"

struct chirps;
struct chirps *chirps_new(void);
void chirps_free(struct chirps *x); /* NULL is fine */

void chirps_ask(struct server *s, struct command *c, struct agent *a);    /* a command handler */
void chirps_answer(struct server *s, struct command *c, struct agent *a); /* likewise: of who has the file */
/* The session is over: what it was asked is answered for it, and what it has asked is dropped. */
void chirps_agent_gone(struct server *s, const char *agent);
