/* world: the core's other world: a core, the memory store, and virtual time.
 *
 * It is as the server is. What the core says in a turn is a batch; the batch is given to the store, becomes
 * durable later (when the caller says so), and only then the actions of that turn leave, by ops->leave. A
 * crash loses the batches that are not durable, and the core is made anew from the store.
 *
 * Strict worlds check as they go: fences only grow, results are taken for the newest fence only, a job ends
 * once. What does not hold is kept as the first violation, and the world goes on. Others are for measuring.
 *
 * One clock serves as wall and steady clock: milliseconds. One thread.
 */
#pragma once
#include "core/core.h"

enum sim_action_kind {
        SIM_ASSIGN,
        SIM_CONTROL,
        SIM_GO,    /* these, which wait for it, may start */
        SIM_ACK,   /* the result of these is durable: forget them */
        SIM_STALE, /* these are not known (any more): kill and forget */
};
struct sim_action { /* owns all it holds: sim_action_deinit */
        enum sim_action_kind kind;
        char *agent, *queue; /* queue: of an assignment */
        uint64_t request, lease_ms;
        uint32_t fence;
        struct set members;
        uint32_t gang_first, gang_size; /* of an assignment; size 0: it starts when it is there */
        enum core_control control;
        unsigned session; /* of the agent when it was said */
        uint64_t turn;    /* in which it was said: sim_world_turns */
};
void sim_action_deinit(struct sim_action *a);

struct sim_world_ops {
        /* The number of the agent's connection now, kept with what is said to it. */
        unsigned (*session)(void *arg, const char *agent);
        /* An action leaves the server. Takes what *a holds. */
        void (*leave)(void *arg, struct sim_action *a);
        /* May be NULL: what a new core is told before anything is replayed. */
        void (*settings)(void *arg, struct core *c);
};

struct sim_world;
struct sim_world_config {
        struct core_config core;
        int64_t start_ms;
        bool strict;
};
int sim_world_new(const struct sim_world_config *config, const struct sim_world_ops *ops, void *arg,
                  struct sim_world **ret, struct err *err); /* 0 or -errno */
void sim_world_free(struct sim_world *w);                   /* NULL is fine */

struct core *sim_world_core(struct sim_world *w); /* another one after a crash */
int64_t sim_world_now(const struct sim_world *w);
void sim_world_go(struct sim_world *w, int64_t now_ms); /* time goes on; never back */

/* Says something to an agent that follows from this turn. Members are copied. */
void sim_world_say(struct sim_world *w, enum sim_action_kind kind, const char *agent, uint64_t request,
                   uint32_t fence, const struct set *members);
void sim_world_answer(struct sim_world *w, uint64_t request); /* its submit is answered by this turn */
void sim_world_turn(struct sim_world *w);                     /* core_match; the turn becomes a batch */
uint64_t sim_world_turns(const struct sim_world *w);          /* so many have gone by */
size_t sim_world_flying(const struct sim_world *w);           /* batches that are not durable */
void sim_world_commit(struct sim_world *w);                   /* the oldest of them is durable now */

/* The server dies and comes back: what is not durable is lost. With snapshot_after, the new core is made from
 * the snapshot after so many records, and the records after it. */
void sim_world_crash(struct sim_world *w, uint64_t snapshot_after);
/* Is the state made from the log the state that is there, byte for byte? A difference is a violation. */
void sim_world_compare(struct sim_world *w, bool shadow, uint64_t snapshot_after);
uint64_t sim_world_records(struct sim_world *w);     /* durable */
uint64_t sim_world_ended(const struct sim_world *w); /* durable rows of history */

/* Strict: did this job's row become durable? */
bool sim_world_has_ended(const struct sim_world *w, uint64_t request, uint32_t member);
/* Strict: core_check, and every request that was acknowledged is there, whole. */
void sim_world_check(struct sim_world *w);

void sim_world_violation(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *sim_world_violated(const struct sim_world *w); /* the first violation, or NULL */
