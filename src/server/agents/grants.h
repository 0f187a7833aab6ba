/* grants: credentials on their way to the agents whose jobs need them.
 *
 * An agent asks for each by request, part and name, and is given it while it holds a job of that request
 * whose description names it. Whoever has asked in this session is told again when the owner replaces it.
 * Core thread.
 */
#pragma once
#include "server/agents/agents.h"
#include "server/agents/command.h"

/* Appends under which name a request's credentials are kept: its owner. A request that another server has
 * handed on has a name of its own ("#7"), which is no user's, so that its jobs get what came with it, and
 * never what the owner has here. */
void grants_owner(const struct server *s, uint64_t request, struct buf *out);
/* Answers the core: see `credential` of struct core_world. */
void grants_credential(const struct server *s, uint64_t request, struct str owner, bool handed_on,
                       struct file_credential *ret);
/* The credentials can be read now: what was recovered without them is told. */
void grants_open(struct server *s);
void grants_tick(struct server *s); /* those that came with a request go when it has ended */

void grants_get(struct server *s, struct command *c, struct agent *a); /* answers, also when it may not */
/* The owner has replaced it. Leaves when that is durable. */
void grants_replaced(struct server *s, struct str owner, struct str name);
void grants_forget(struct agent *a); /* its session is over */

/* Jobs that are held for want of a credential that is there now are released, in slices. */
struct grants_release {
        struct str owner, name;
        bool shown_elsewhere; /* it is new, or for other URLs than before: the core is told as well */
        uint64_t request;
        uint64_t released;
};
bool grants_release_slice(struct server *s, struct grants_release *r, int64_t end_ns); /* true: done */
