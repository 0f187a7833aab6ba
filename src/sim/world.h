/* world: a simulated server: a core, the memory store, and virtual time.
 *
 * The world behaves as the server does. The core's output of a turn is a batch; the batch is given to the
 * store, becomes durable later (at sim_world_commit), and only then the actions of that turn leave, by
 * ops->leave. A crash loses the batches that are not durable, and the core is rebuilt from the store.
 *
 * Strict worlds check invariants all the time: fences only grow, results are taken for the newest fence only,
 * a job ends once, an attempt is charged once. The first violation is recorded, and the world goes on. Worlds
 * that are not strict are for measurements.
 *
 * One clock serves as wall and steady clock: milliseconds. One thread.
 */
#pragma once
#include "core/core.h"

enum sim_action_kind {
        SIM_ASSIGN,
        SIM_CONTROL,
        SIM_GO,    /* the members, which wait for their gang, may start */
        SIM_ACK,   /* the results of the members are durable: forget them */
        SIM_STALE, /* the members are not known (any more): kill and forget them */
};
struct sim_action { /* owns all it holds: sim_action_deinit */
        enum sim_action_kind kind;
        char *agent, *queue; /* queue: of an assignment */
        uint64_t request, lease_ms;
        uint32_t fence;
        struct set members;
        uint32_t gang_first, gang_size; /* of an assignment; size 0: it starts at once */
        enum core_control control;
        unsigned session; /* session of the agent at that turn */
        uint64_t turn;    /* turn that made the action: sim_world_turns */
};
void sim_action_deinit(struct sim_action *a);

struct sim_world_ops {
        /* Returns the number of the agent's present connection, which actions to the agent keep. */
        unsigned (*session)(void *arg, const char *agent);
        /* Called when an action leaves the server. Takes over the contents of *a. */
        void (*leave)(void *arg, struct sim_action *a);
        /* Configures a new core before the log is replayed; may be NULL. */
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
void sim_world_go(struct sim_world *w, int64_t now_ms); /* advances the time; never back */

/* Sends an action to an agent when this turn is durable. Members are copied. */
void sim_world_say(struct sim_world *w, enum sim_action_kind kind, const char *agent, uint64_t request,
                   uint32_t fence, const struct set *members);
void sim_world_answer(struct sim_world *w,
                      uint64_t request);             /* this turn acknowledges the request's submit */
void sim_world_turn(struct sim_world *w);            /* core_match; the turn becomes a batch */
uint64_t sim_world_turns(const struct sim_world *w); /* number of turns so far */
size_t sim_world_flying(const struct sim_world *w);  /* batches that are not durable */
void sim_world_commit(struct sim_world *w);          /* makes the oldest of them durable */

/* Crashes and restarts the server: batches that are not durable are lost. With snapshot_after, the new core
 * is made from the snapshot after that number of records, and the records after it. */
void sim_world_crash(struct sim_world *w, uint64_t snapshot_after);
/* Compares the state replayed from the log with the present state, byte for byte. A difference is a
 * violation. */
void sim_world_compare(struct sim_world *w, bool shadow, uint64_t snapshot_after);
uint64_t sim_world_records(struct sim_world *w);     /* durable */
uint64_t sim_world_ended(const struct sim_world *w); /* durable rows of history */

/* Returns whether this job's history row is durable. Strict worlds only. */
bool sim_world_has_ended(const struct sim_world *w, uint64_t request, uint32_t member);
/* Checks the core (core_check) and that every acknowledged request is complete. Strict worlds only. */
void sim_world_check(struct sim_world *w);

void sim_world_violation(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *sim_world_violated(const struct sim_world *w); /* the first violation, or NULL */
