/* gang: gangs, jobs that start together, all or none; for the files of core/ only.
 *
 * The members of a part with GangSize form consecutive gangs. A gang is given places only when all its
 * members that have not ended can be given one in the same turn: at one queue, at queues of one group, or
 * anywhere (GangWithin). They get one fence. EVENT_GANG follows their `matched` events; agents keep the
 * members, with their resources, without starting them. When all have accepted, EVENT_GO follows, and is sent
 * once it is durable. Until then nothing of the gang has run and it can be taken back at no cost: a refusal,
 * a lost agent, or gang_wait_ms without an answer frees all members at once.
 *
 * Afterwards the members share their fate:
 *
 *   one is idle, held or vacated              the others are vacated, and wait until all are idle again
 *   one was removed                           the others are removed
 *   the first has ended, and only the         running members are stopped, and count as completed; waiting
 *   first counts (first_ends)                 ones are removed
 *   one has completed                         no effect: the others go on, and start again without it
 *
 * Users' commands apply to the whole gang in any case (gang_widen). The rules are applied between turns:
 * events mark the gangs that they touch, and gang_settle compares the members' states and emits the missing
 * events, from whatever state, so a restart in between completes what was begun. Reservations for gangs are
 * in reserve.h.
 */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

struct core_attempts;

/* States of a gang's members. */
struct gang {
        struct request *request;
        uint32_t first, size, fence;
        bool first_ends, first_over;
        struct set waits; /* matched, not started: may be freed at once */
        struct set runs;  /* started, and not stopping */
        struct set stops; /* stopping, will be idle or held */
        struct set idle, held;
        bool removed;  /* some members are removed, or being removed */
        bool accepted; /* all matched members have been accepted */
};
void gang_look(struct request *r, uint32_t first, struct gang *ret);
void gang_look_deinit(struct gang *g);

void gang_event(struct core *c, const struct event *e); /* called after a live event was applied */
/* Emits the events that the rules above require. Called before matching, and whenever an incomplete gang must
 * not be seen. */
void gang_settle(struct core *c);
/* Frees gangs whose members did not answer in time. Returns the milliseconds until the next call. */
int64_t gang_tick(struct core *c);
void gang_ready(struct core *c); /* replay is over: examines every gang */
void gang_init(struct core *c);
void gang_deinit(struct core *c);
/* The agent has disconnected: gangs that wait for it are freed. */
void gang_agent_away(struct core *c, const struct core_agent *a);
/* Sends Go again for those of the attempts in the agent's inventory that may start. */
void gang_inventory(struct core *c, const char *agent, const struct core_attempts *has,
                    const struct set *mine);
/* Checks that no incomplete gang runs, after gang_settle. Returns NULL, or a sentence. */
const char *gang_invariant(struct core *c);

/* Returns the number of places that the class's first complete gang needs; 0: there is none. */
uint64_t gang_first_size(const struct job_class *k);
/* Finds the bucket's next gang from member `from` on that can be matched, with all its members idle. False:
 * there is none among the next few. */
bool gang_next(const struct bucket *b, uint64_t from, uint32_t *ret_first, uint32_t *ret_size,
               struct set *ret);
/* Appends the name of the group of queues within which a gang of the class must lie, for this queue ("" if
 * any queues will do). False: the queue is in no group. */
bool gang_company(struct core *c, const struct job_class *k, const struct queue *q, struct buf *name);
