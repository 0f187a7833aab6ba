/* gang: jobs that start together, all or none. People call them a set; for the files of core/ only.
 *
 * The members of a part that says so (SetSize) come in consecutive groups. A set is given places only when
 * all members that have not ended can be given one in the same turn: at one queue, at queues of one group, or
 * anywhere (SetWithin). They get one fence. The events `matched` are followed by EVENT_SET; the agents hold
 * what they were given, with its room, until they are told. When all have accepted comes EVENT_GO, and what
 * follows from it leaves when it is durable. Until then nothing of the set has run, so it costs nothing to
 * take it back: a refusal, a lost agent, or set_wait_ms without an answer frees all members at once.
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
#include "core/match/choose.h"

#define GANG_SIZE_MAX 10000u

void gang_rule_read(struct core *c, struct template *t); /* what makes no sense counts as not said */
/* Does what the template says of sets make sense for so many members? 0, -EINVAL with err. */
int gang_check(struct core *c, const struct template *t, uint64_t members, struct err *err);
/* Are the jobs of each set in one bucket? They must be alike to be placed. 0, CORE_INVALID with err. */
int gang_refuse(struct core *c, const struct request *r, struct err *err);
uint32_t gang_size(const struct part *p); /* members of a set of the part; 0: none */
/* The set of a member: [*ret_first, *ret_first + *ret_size). False: it is in none. */
bool gang_of(const struct request *r, uint32_t member, uint32_t *ret_first, uint32_t *ret_size);
/* The members, and all of their sets. *to is empty and the caller's. */
void gang_widen(const struct request *r, const struct set *members, struct set *to);

void gang_class_init(struct core *c, struct class *k);
void gang_class_deinit(struct core *c, struct class *k);
static inline bool gang_class(const struct class *k)
{
        return k->template->gang.size != 0;
}

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
void gang_deinit(struct core *c);
/* Sets that wait for an agent that is not there wait no more. */
void gang_agent_away(struct core *c, const struct core_agent *a);
/* The agent says that it has these: what it has not accepted it has now, what may go is told again. */
void gang_inventory(struct core *c, const char *agent, const struct core_attempts *has,
                    const struct set *mine);
/* NULL, or a sentence: half a set runs. After gang_settle. */
const char *gang_invariant(struct core *c);

/* ---- gang_place.c */
/* Gives places to as many sets of the class as can be. */
void gang_place(struct core *c, struct class *k);
/* How many places the class's first set that is whole needs; 0: none is. */
uint64_t gang_first_size(const struct class *k);
/* The most members that one node or group, or all, could start at once now; *where its name. */
uint64_t gang_most_now(struct core *c, struct class *k, struct buf *where);
/* Queues that count together for the class: the name of the one that this queue belongs to ("" where there is
 * no difference); false: it is in none. */
bool gang_company(struct core *c, const struct class *k, const struct queue *q, struct buf *name);
