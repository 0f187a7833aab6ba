/* assign: assignments of the core as messages to an agent.
 *
 * The assignments of one turn for one agent are gathered and leave as one Assign for each offer that they
 * answer, with those templates that the agent has not seen in this session.
 */
#pragma once
#include "base/map.h"
#include "server/agents/agents.h"

struct pending;
struct pending *pending_new(void);
void pending_free(struct pending *p); /* NULL is fine */
void pending_add(struct server *s, struct agent *a, const struct core_assignment *as);
void pending_flush(struct server *s, struct agent *a); /* durable before it leaves */

void sent_free(struct idmap *sent);
void sent_forget(struct idmap *sent, uint64_t request);
