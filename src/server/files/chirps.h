/* chirps: answers the calls that programs of running attempts make (drover chirp): attributes of their
 * jobs, lines for the jobs' logs, and files below the folders that the jobs were submitted from.
 *
 * The core decides whether the agent that passes on a call has the attempt, and whether the job's author
 * allows calls. Attributes and lines become events, and are answered when they are durable. A file is read
 * or written by an agent that sees the folder and runs the owner's jobs, as for user logs; its answer is
 * passed back once. Core thread. */
#pragma once
#include "server/agents/command.h"
#include "server/loop/server.h"

struct chirps;
struct chirps *chirps_new(void);
void chirps_free(struct chirps *x); /* accepts NULL */

void chirps_ask(struct server *s, struct command *c, struct agent *a); /* a command handler */
/* a command handler: the answer of the agent that has the file */
void chirps_answer(struct server *s, struct command *c, struct agent *a);
/* The agent's session has ended: the questions to it are answered with an error, and its own questions are
 * dropped. */
void chirps_agent_gone(struct server *s, const char *agent);
