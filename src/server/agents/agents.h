/* agents: the core thread's view of the agents: who is connected by which session, what it was sent.
 *
 * A session is a number that the I/O thread gives to each connection; messages from the core name it, and
 * one for a session that is over is dropped there. Assignments of a turn are gathered and leave as one
 * message for each offer (agents_flush at the end of the turn).
 */
#pragma once
#include "base/job/owners.h"
#include "server/agents/command.h"
#include "server/loop/server.h"
#include "wire/drover.pb-c.h"

struct certificate;
struct agents;
/* handlers: what each kind of command does; borrowed. */
struct agents *agents_new(struct server *s, command_fn *const handlers[COMMAND_KINDS]);
void agents_drop_all(struct agents *a);

struct agent {
        char *name;
        uint64_t session; /* 0: not connected */
        bool lapsed;      /* leases ended in this session: it is closed at the end of the turn */
        char *hostname, *filesystem_domain, *program, *instance;
        int64_t since_ms, seen_ms; /* Unix milliseconds: connected since; last word */
        struct map *asked;         /* credentials that it was given in this session: see grants.h */
        struct idmap *sent;        /* request → templates sent in this session: see assign.h */
        bool hands_on;             /* in this session it has offered a queue that hands jobs on */
        struct pending *pending;   /* assignments of this turn */
        /* of the certificate of this session */
        int64_t until_boot_ms; /* its end, at which the session ends: a clock that is set ends none */
        struct owners owners;  /* whom it may serve at most */
        bool owners_said;      /* the admin has said whom */
        char *tags;            /* "": no bound */
        bool warned;           /* that its offers are cut */
        /* see agents_hear */
        bool waits; /* it is among those that have something put off */
        struct task *put_off, **put_off_last;
        struct agent *put_off_next; /* of those that have something put off */
        uint64_t turn;              /* the last in which something was done for it */
        int64_t spent_ns;           /* in that turn */
};
struct agent *agents_find(struct server *s, struct str name); /* NULL when it never came */
/* Walks over all agents, in no order: size_t at = 0; while (agents_next(s, &at, &agent)). */
bool agents_next(struct server *s, size_t *at, struct agent **ret);

struct agent_hello {
        const char *name, *hostname, *filesystem_domain, *program;
        const char *instance; /* of its folder; NULL: not said */
        uint64_t session;
        const struct certificate *certificate;
};
/* Whether an agent with another folder is connected under this name; err says so in words for the one that
 * comes. Each would end the other's session, and the jobs of the other, for ever. */
bool agents_is_taken(struct server *s, const struct agent_hello *h, struct err *err);
/* A second session of one name takes the place of the first, which is closed. */
struct agent *agents_connected(struct server *s, const struct agent_hello *h);
/* Ends its session, if it has one. True: it had. */
bool agents_expel(struct server *s, struct str name, const char *why);
/* Ends all sessions: each agent comes back at once, with its inventory. */
void agents_greet_again(struct server *s);
/* Ends the sessions whose certificates have ended: who has a new one comes back with it. */
void agents_tick(struct server *s);
/* See `heard` of struct core_world. */
int64_t agents_heard(struct server *s, const char *name, int64_t known_ms);
/* It has a queue that hands jobs on: templates that it was sent without what goes along are sent again. */
void agents_hands_on(struct agent *a);
void agents_gone(struct server *s, struct str name, uint64_t session);
/* The agent whose session this is, or NULL when another has taken its place. */
struct agent *agents_session(struct server *s, struct str name, uint64_t session);

/* Runs a command on the core thread, behind those that its agent sent before. The commands of one agent have
 * a few milliseconds of each turn; the rest is put off to the next turn, behind the commands of all other
 * agents. Commands of a session are dropped when another session takes its place. `t` is the task of a
 * command, and is taken. */
void agents_hear(struct server *s, struct task *t);

/* The core has decided (called by world.c). */
void agents_assign(struct server *s, const struct core_assignment *a);
void agents_control(struct server *s, const char *agent, enum core_control what, uint64_t request,
                    uint32_t fence, const struct set *members);
void agents_go(struct server *s, const char *agent, uint64_t request, uint32_t fence,
               const struct set *members);
void agents_forget(struct server *s, uint64_t request);
void agents_flush(struct server *s);
