/* agents: the core thread's table of agents: which session each has, and what was sent to it.
 *
 * A session is a number that the I/O thread gives to each connection. Messages from the core name it; a
 * message to a session that has ended is dropped there. The assignments of a turn are collected, and sent
 * as one message for each offer (agents_flush at the end of the turn). */
#pragma once
#include "base/job/owners.h"
#include "server/agents/command.h"
#include "server/loop/server.h"
#include "wire/drover.pb-c.h"

struct certificate;
struct agents;
/* handlers: the function for each kind of command; borrowed. */
struct agents *agents_new(struct server *s, command_fn *const handlers[COMMAND_KINDS]);
void agents_drop_all(struct agents *a);

struct agent {
        char *name;
        uint64_t session; /* 0: not connected */
        bool lapsed;      /* leases ended during this session, which is closed at the end of the turn */
        char *hostname, *filesystem_domain, *program, *instance;
        int64_t since_ms, seen_ms; /* Unix milliseconds: start of the session; last message */
        struct map *asked;         /* credentials that the agent was given in this session: see grants.h */
        struct idmap *sent;        /* request → templates sent in this session: see assign.h */
        bool reserved_told;        /* in this session a list of reservations was sent: see reserved.h */
        bool hands_on;             /* in this session the agent has offered a queue that hands jobs on */
        struct pending *pending;   /* of this turn */
        /* from the certificate of this session */
        /* when the certificate expires, which ends the session; on the boot clock, so that setting the
         * clock ends no session */
        int64_t until_boot_ms;
        struct owners owners; /* the owners that the agent may serve */
        bool owners_said;     /* an admin has listed the owners */
        char *tags;           /* "": any */
        char *most;           /* most that each queue may offer, base/job/offer_limit.h; "": no limit */
        bool warned;          /* a warning that its offers are restricted was logged */
        /* see agents_hear */
        bool waits; /* it is in the list of agents with deferred commands */
        struct task *deferred, **deferred_last;
        struct agent *deferred_next; /* in the list of agents with deferred commands */
        uint64_t turn;               /* the last turn in which a command of it ran */
        int64_t spent_ns;            /* processor time in that turn */
};
/* NULL when no agent of this name has ever connected */
struct agent *agents_find(struct server *s, struct str name);
/* Iterates over all agents, in no order: size_t at = 0; while (agents_next(s, &at, &agent)). */
bool agents_next(struct server *s, size_t *at, struct agent **ret);

struct agent_hello {
        const char *name, *hostname, *filesystem_domain, *program;
        const char *instance; /* id of the agent's folder; NULL: not given */
        uint64_t session;
        const struct certificate *certificate;
};
/* Returns whether an agent with another folder is connected under this name; err then explains that to the
 * new one. Two agents of one name would close each other's sessions and lose each other's jobs again and
 * again. */
bool agents_is_taken(struct server *s, const struct agent_hello *h, struct err *err);
/* Registers a session. An earlier session of the same name is closed. */
struct agent *agents_connected(struct server *s, const struct agent_hello *h);
/* Closes the agent's session. Returns whether it had one. */
bool agents_expel(struct server *s, struct str name, const char *why);
/* Closes all sessions, so that each agent connects again and sends its inventory. */
void agents_reconnect(struct server *s);
/* Closes the sessions whose certificates have expired; an agent with a new certificate connects again. */
void agents_tick(struct server *s);
/* See `heard` of struct core_world. */
int64_t agents_heard(struct server *s, const char *name, int64_t known_ms);
/* Tells that the agent has a queue that hands jobs on. Templates that were sent without the attributes for
 * that are sent again. */
void agents_hands_on(struct agent *a);
void agents_gone(struct server *s, struct str name, uint64_t session);
/* Returns the agent of this session, or NULL when another session has replaced it. */
struct agent *agents_session(struct server *s, struct str name, uint64_t session);

/* Runs a command on the core thread, after the earlier commands of its agent. The commands of one agent
 * may use a few milliseconds of each turn; the rest is deferred to the next turn, after the commands of
 * all other agents. Commands of a replaced session are dropped. `t` is the task of a command, and is
 * taken. */
void agents_hear(struct server *s, struct task *t);

/* Sends an assignment that the core has decided on; called by world.c. */
void agents_assign(struct server *s, const struct core_assignment *a);
void agents_control(struct server *s, const char *agent, enum core_control what, uint64_t request,
                    uint32_t fence, const struct set *members);
void agents_go(struct server *s, const char *agent, uint64_t request, uint32_t fence,
               const struct set *members);
void agents_forget(struct server *s, uint64_t request);
void agents_flush(struct server *s);
