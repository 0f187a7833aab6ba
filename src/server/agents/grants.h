/* grants: gives credentials to the agents whose jobs need them.
 *
 * An agent asks for a credential by request, part and name. It gets the credential while it holds a job of
 * that request whose description names it. When the owner replaces the credential, all agents that got it
 * in their current session are sent the new one. Core thread. */
#pragma once
#include "server/agents/agents.h"
#include "server/agents/command.h"

/* Appends the name under which a request's credentials are kept, which is its owner. A request that
 * another server has handed on has a name of its own ("#7"), which is no user's: its jobs get the
 * credentials that came with it, and never those that the owner has here. */
void grants_owner(const struct server *s, uint64_t request, struct buf *out);
/* Answers the core: see `credential` of struct core_world. */
void grants_credential(const struct server *s, uint64_t request, struct str owner, bool handed_on,
                       struct file_credential *ret);
/* Tells the core about credentials recovered at the start, once they can be decrypted. */
void grants_open(struct server *s);
void grants_tick(struct server *s); /* removes credentials that came with a request which has ended */

/* answers the agent; also when it may not have the credential */
void grants_get(struct server *s, struct command *c, struct agent *a);
/* Sends a replaced credential to the agents that have it, when the replacement is durable. */
void grants_replaced(struct server *s, struct str owner, struct str name);
void grants_forget(struct agent *a); /* the agent's session has ended */

/* Releases, in slices, the jobs that were held for lack of a credential that exists now. */
struct grants_release {
        struct str owner, name;
        /* the credential is new, or is for other URLs than before, so the core is told as well */
        bool shown_elsewhere;
        uint64_t request;
        uint32_t part; /* of the request, that the core continues with; 0: it is done with it */
        uint64_t released;
};
/* returns true when all are released */
bool grants_release_slice(struct server *s, struct grants_release *r, int64_t end_ns);
