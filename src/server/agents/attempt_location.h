/* attempt_location: where attempts are beyond this server: what their agent does for them, what a batch
 * system calls them, and the path of those that were handed on to another server.
 *
 * Told by agents, kept in memory beside the jobs, and gone with the attempt: a location informs, and after a
 * restart agents tell it again. Every change has a number, so that a server that handed a job on to this one
 * asks for what has changed since. Core thread.
 */
#pragma once
#include "base/format/json.h"
#include "server/loop/server.h"

#define ATTEMPT_LOCATION_HOPS_MAX (64u << 10) /* bytes of a path */

struct attempt_locations;
struct attempt_locations *attempt_locations_new(void);
void attempt_locations_free(struct attempt_locations *w); /* NULL is fine */

struct attempt_location { /* borrowed */
        uint64_t request;
        uint32_t member, fence;
        struct str runner, native, word, said;
        struct str doing; /* what its agent does for it; empty: it runs, or nobody said */
        int64_t doing_since_ms;
        uint64_t doing_bytes, doing_bytes_all; /* all 0: not known */
        struct str hops;                       /* a JSON list, as an agent wrote it; empty: none */
};
/* Keeps what an agent says of an attempt; what is said of an attempt that the agent does not have is ignored.
 */
void attempt_location_take(struct server *s, struct str agent, const struct attempt_location *what);
void attempt_locations_event(struct server *s, const struct event *e); /* from world.c */

/* Writes the members of a Path object (docs/openapi.json): job, summary, hops. False: there is no such job in
 * the core. */
bool attempt_location_write(struct server *s, struct json *j, uint64_t request, uint32_t member);
/* Appends a sentence that says why the job waits where it is, in the words of the batch system or the other
 * server: "Pending in Slurm as 101_16: Resources." False: no reason was told, and nothing is appended. */
bool attempt_location_print_wait(struct server *s, uint64_t request, uint32_t member, struct buf *out);
/* Why the agent that had the job last gave it back, while the job is idle; NULL: no agent did, or the reason
 * was forgotten. Borrowed. */
const char *attempt_location_back(struct server *s, uint64_t request, uint32_t member);
/* What the agent does for the job while it does not run; NULL: nobody said. Borrowed. */
const char *attempt_location_doing(struct server *s, uint64_t request, uint32_t member);
/* Jobs that came from other servers, changed after number `after`, oldest change first: calls fn, which
 * returns false to stop. Returns the newest number. */
uint64_t attempt_locations_changed(struct server *s, uint64_t after,
                                   bool (*fn)(void *arg, uint64_t request, uint32_t member), void *arg);
