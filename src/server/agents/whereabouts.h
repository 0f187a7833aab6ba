/* whereabouts: where attempts are beyond this server: what their agent does for them, what a batch system
 * calls them, the path of those that
 * were handed on to another server.
 *
 * Told by agents, kept in memory beside the jobs, and gone with the attempt: it informs, and after a restart
 * it is told again. Every change has a number, so that a server that handed a job on to this one asks for
 * what has changed since. Core thread.
 */
#pragma once
#include "base/json.h"
#include "server/loop/server.h"

#define WHEREABOUTS_HOPS_MAX (64u << 10) /* bytes of a path */

struct whereabouts;
struct whereabouts *whereabouts_new(void);
void whereabouts_free(struct whereabouts *w); /* NULL is fine */

struct whereabout { /* borrowed */
        uint64_t request;
        uint32_t member, fence;
        struct str runner, native, word, said;
        struct str doing; /* what its agent does for it; empty: it runs, or nobody said */
        int64_t doing_since_ms;
        uint64_t doing_bytes, doing_bytes_all; /* all 0: not known */
        struct str hops;                       /* a JSON list, as an agent wrote it; empty: none */
};
/* What an agent says; of an attempt that it does not have it is ignored. */
void whereabouts_take(struct server *s, struct str agent, const struct whereabout *what);
void whereabouts_event(struct server *s, const struct event *e); /* from world.c */

/* The members of the object: job, summary, hops: docs/openapi.json, Path. False: there is no such job in the
 * core. */
bool whereabouts_write(struct server *s, struct json *j, uint64_t request, uint32_t member);
/* Why it waits where it is, in the system's words; NULL: nobody said. Borrowed. */
const char *whereabouts_said(struct server *s, uint64_t request, uint32_t member);
/* Why the agent that had it last gave it back, while it is idle; NULL: none did, or nobody remembers.
 * Borrowed. */
const char *whereabouts_back(struct server *s, uint64_t request, uint32_t member);
/* What its agent does for it while it does not run; NULL: nobody said. Borrowed. */
const char *whereabouts_doing(struct server *s, uint64_t request, uint32_t member);
/* Jobs that came from other servers, changed after number `after`, oldest change first: calls fn, which
 * returns false to stop. Returns the newest number. */
uint64_t whereabouts_changed(struct server *s, uint64_t after,
                             bool (*fn)(void *arg, uint64_t request, uint32_t member), void *arg);
