/* scripts: what agents have submitted for jobs, asked for by people.
 *
 * A script stays at its agent. Who wants to see one asks, and the answer is kept for him until he takes it.
 * Core thread.
 */
#pragma once
#include "server/agents/command.h"
#include "server/loop/server.h"

struct scripts;
struct scripts *scripts_new(void);
void scripts_free(struct scripts *x); /* NULL is fine */

/* Asks the agent that has the attempt. Returns the question's number, or 0: the agent is not connected, or
 * too many questions are open. */
uint64_t scripts_ask(struct server *s, const char *agent, uint64_t request, uint32_t member, uint32_t fence);
/* An agent's answer; one that nobody waits for is ignored. Wakes who waits for the request (waits.h). */
void scripts_answer(struct server *s, struct command *c, struct agent *a);
/* If the answer has come: appends the text, or what the agent says instead, forgets the question, and is
 * true. */
bool scripts_take(struct server *s, uint64_t number, struct buf *text, struct buf *error);
void scripts_forget(struct server *s, uint64_t number);
