/* attempt_location: where attempts are beyond this server: what the agent currently does for them, their
 * id in a batch system, and the servers that a job was handed on to.
 *
 * Agents report locations. They are kept in memory until the attempt ends; after a restart agents report
 * them again. Every change has a number, so that a server that handed a job on to this one can ask for the
 * changes since its last question. Core thread. */
#pragma once
#include "base/format/json.h"
#include "server/loop/server.h"

#define ATTEMPT_LOCATION_HOPS_MAX (64u << 10) /* bytes of the list of hops */

struct attempt_locations;
struct attempt_locations *attempt_locations_new(void);
void attempt_locations_free(struct attempt_locations *w); /* accepts NULL */

struct attempt_location { /* borrowed */
        uint64_t request;
        uint32_t member, fence;
        struct str runner, native, word, said;
        struct str doing; /* what the agent does for the attempt; empty: it runs, or nothing was reported */
        int64_t doing_since_ms;
        uint64_t doing_bytes, doing_bytes_all; /* all 0: unknown */
        struct str hops;                       /* a JSON list, as an agent wrote it; empty: none */
};
/* Stores what an agent reports of an attempt; ignored if the agent does not have the attempt. */
void attempt_location_take(struct server *s, struct str agent, const struct attempt_location *what);
/* an event was applied; called by world.c */
void attempt_locations_event(struct server *s, const struct event *e);

/* Writes the members of a Path object (docs/openapi.json): job, summary, hops. False: there is no such job in
 * the core. */
bool attempt_location_write(struct server *s, struct json *j, uint64_t request, uint32_t member);
/* Appends a sentence that says why the job waits where it is, in the words of the batch system or the other
 * server: "Pending in Slurm as 101_16: Resources." False: no reason was told, and nothing is appended. */
bool attempt_location_print_wait(struct server *s, uint64_t request, uint32_t member, struct buf *out);
/* Returns why the last agent gave the job back, while the job is idle; NULL: none did, or the reason is no
 * longer kept. Borrowed. */
const char *attempt_location_back(struct server *s, uint64_t request, uint32_t member);
/* Returns what the agent does for the job while it is not running; NULL: nothing was reported. Borrowed. */
const char *attempt_location_doing(struct server *s, uint64_t request, uint32_t member);
/* Jobs that came from other servers, changed after number `after`, oldest change first: calls fn, which
 * returns false to stop. Returns the newest number. */
uint64_t attempt_locations_changed(struct server *s, uint64_t after,
                                   bool (*fn)(void *arg, uint64_t request, uint32_t member), void *arg);
