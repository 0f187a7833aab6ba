/* gang: jobs that start together, all or none. People call them a set; for the files of core/ only.
 *
 * The members of a part that says so (SetSize) come in consecutive groups. A set is given places only when
 * all members that have not ended can be given one in the same turn: at one queue, at queues of one group, or
 * anywhere (SetWithin). They get one fence. The events `matched` are followed by EVENT_GANG; the agents hold
 * what they were given, with its room, until they are told. When all have accepted comes EVENT_GO, and what
 * follows from it leaves when it is durable. Until then nothing of the set has run, so it costs nothing to
 * take it back: a refusal, a lost agent, or gang_wait_ms without an answer frees all members at once.
 *
 * Afterwards a set is whole or it stops: what one member suffers all do.
 *
 *   one is idle, held or vacated, whyever     the others are vacated, and wait until all are idle again
 *   one was removed                           the others are removed
 *   the first has ended, and it is the        those that run are stopped, and count as completed; those that
 *   first that matters (first_ends)           wait are removed
 *   one has completed                         nothing: the others go on, and start again without it
 *
 * Users' commands reach the whole set anyhow (gang_widen). The rules are looked after between turns: events
 * mark the sets that they touch, gang_settle looks at the members' states and emits what is missing, from
 * whatever state: so a restart in between finishes what was begun. Reservations for sets are in reserve.h.
 */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

struct core_attempts;

/* What the members of a set are now. */
struct gang {
        struct request *request;
        uint32_t first, size, fence;
        bool first_ends, first_over;
        struct set waits; /* matched, and not gone: may be freed at once */
        struct set runs;  /* gone, and not stopping */
        struct set stops; /* stopping, to be idle or held again */
        struct set idle, held;
        bool removed;  /* some are, or will be */
        bool accepted; /* all that wait were */
};
void gang_look(struct request *r, uint32_t first, struct gang *ret);
void gang_look_deinit(struct gang *g);

void gang_event(struct core *c, const struct event *e); /* one has been applied, live */
/* What the rules above want. Before matching, and whenever a half set must not be seen. */
void gang_settle(struct core *c);
/* Sets whose members do not answer. Milliseconds until it wants to be called. */
int64_t gang_tick(struct core *c);
void gang_ready(struct core *c); /* replay is over: every set is looked at */
void gang_init(struct core *c);
void gang_deinit(struct core *c);
/* Sets that wait for an agent that is not there wait no more. */
void gang_agent_away(struct core *c, const struct core_agent *a);
/* The agent says that it has these: what it has not accepted it has now, what may go is told again. */
void gang_inventory(struct core *c, const char *agent, const struct core_attempts *has,
                    const struct set *mine);
/* NULL, or a sentence: half a set runs. After gang_settle. */
const char *gang_invariant(struct core *c);

/* How many places the class's first set that is whole needs; 0: none is. */
uint64_t gang_first_size(const struct job_class *k);
/* The next set of the bucket from member `from` on that can be given: its members, all idle. False: there is
 * none among the next few. */
bool gang_next(const struct bucket *b, uint64_t from, uint32_t *ret_first, uint32_t *ret_size,
               struct set *ret);
/* Queues that count together for the class: the name of the one that this queue belongs to ("" where there is
 * no difference); false: it is in none. */
bool gang_company(struct core *c, const struct job_class *k, const struct queue *q, struct buf *name);
