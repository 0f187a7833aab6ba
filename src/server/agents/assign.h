/* assign: sends the core's assignments to agents.
 *
 * The assignments of one turn for one agent are collected and sent as one Assign for each offer that they
 * answer, together with the templates that the agent has not received in this session. */
#pragma once
#include "base/map.h"
#include "server/agents/agents.h"

struct pending;
struct pending *pending_new(void);
void pending_free(struct pending *p); /* accepts NULL */
void pending_add(struct server *s, struct agent *a, const struct core_assignment *as);
/* sends the collected assignments, after they are durable */
void pending_flush(struct server *s, struct agent *a);

void sent_free(struct idmap *sent);
void sent_forget(struct idmap *sent, uint64_t request);
