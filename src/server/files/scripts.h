/* scripts: fetches the scripts that agents have submitted to batch systems for jobs.
 *
 * A script stays at its agent. A caller asks for one, and the answer is kept until the caller takes it.
 * Core thread. */
#pragma once
#include "server/agents/command.h"
#include "server/loop/server.h"

struct scripts;
struct scripts *scripts_new(void);
void scripts_free(struct scripts *x); /* accepts NULL */

/* Asks the agent that has the attempt, for a caller. Returns the number of the question, which the caller
 * takes or forgets, or 0: the agent is not connected, or too many of the caller's questions are open. */
uint64_t scripts_ask(struct server *s, const char *who, const char *agent, uint64_t request, uint32_t member,
                     uint32_t fence);
/* Takes an agent's answer; ignored if nobody waits for it. Wakes the calls that wait for the request
 * (waits.h). */
void scripts_answer(struct server *s, struct command *c, struct agent *a);
/* If the answer has come, appends the script, or the agent's error, forgets the question, and returns
 * true. */
bool scripts_take(struct server *s, uint64_t number, struct buf *text, struct buf *error);
void scripts_forget(struct server *s, uint64_t number);
