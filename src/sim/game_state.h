/* game_state: the game's state, shared by game.c, game_agent.c and game_user.c. */
#pragma once
#include <inttypes.h>

#include "base/mem.h"
#include "sim/game.h"
#include "sim/world.h"

#define GAME_AGENTS   6
#define GAME_QUEUES   2 /* of an agent */
#define GAME_FILES    12
#define GAME_STORES   2  /* file i is at store i % GAME_STORES */
#define GAME_LICENCES 5  /* units of the pool "sw" */
#define GAME_CAPACITY 24 /* MiB of store 0 */

enum attempt_state { ATTEMPT_TAKEN, ATTEMPT_RUNNING, ATTEMPT_DONE };
struct attempt {
        uint64_t request;
        uint32_t member, fence;
        enum attempt_state state;
        int64_t ends, lease_ends, lease_ms;
        unsigned queue, cpus, memory, licences;
        enum core_outcome outcome;
        int exit_code;
        bool vacating;
        bool waits;     /* for the go of its gang */
        unsigned files; /* files that the job reads, a bit for each */
        bool gone;      /* it was given back */
        bool poison;    /* it takes its machine down */
};
struct game_queue {
        unsigned cpus, memory, busy_cpus, busy_memory;
        bool offer_wanted;
};
struct game_agent {
        char name[8];
        bool connected, silent;
        bool dies;       /* a job has taken it down */
        bool black_hole; /* no job that runs there ends */
        unsigned session;
        struct game_queue queues[GAME_QUEUES];
        unsigned queue_count;
        unsigned files;                  /* files in its cache, a bit for each */
        bool down[GAME_STORES];          /* the store does not answer this agent */
        uint64_t down_turn[GAME_STORES]; /* turn in which the server was told so */
        uint64_t serial;
        struct attempt *attempts;
        size_t count, cap;
        int64_t renewed;
};
struct message { /* to an agent, under way */
        int64_t at;
        struct sim_action action;
};

struct game {
        struct sim_world *world;
        enum { GAME_FREE, GAME_HELD, GAME_WAITS } bank; /* treatment of jobs that cannot pay */
        bool reserves;                                  /* room is set aside */
        bool metas;                                     /* jobs are reserved for */
        uint64_t advance_seen;                          /* the newest reservation that was counted */
        bool space;                                     /* the space of store 0 is counted */
        struct sim_random random;
        struct game_agent agents[GAME_AGENTS];
        struct message *mail;
        size_t mail_count, mail_cap;
        struct game_draft *draft; /* a submit that is made in slices; NULL: none */
        bool draining;
        unsigned step;
        FILE *trace;
        struct sim_game_counts counts;
};

#define GAME_TRACE(g, ...)                                                                                   \
        do {                                                                                                 \
                if ((g)->trace) {                                                                            \
                        fprintf((g)->trace, "%u t=%" PRId64 ": ", (g)->step, sim_world_now((g)->world));     \
                        fprintf((g)->trace, __VA_ARGS__);                                                    \
                        fputc('\n', (g)->trace);                                                             \
                }                                                                                            \
        } while (0)

static inline unsigned game_below(struct game *g, unsigned n)
{
        return sim_random_below(&g->random, n);
}
static inline bool game_chance(struct game *g, unsigned percent)
{
        return sim_random_chance(&g->random, percent);
}

/* Speed that the queue advertises; 0 is slow. */
static inline unsigned game_speed(const struct game_queue *q)
{
        return q->cpus % 3;
}

/* game.c: URL of file i, which is at store i % GAME_STORES */
const char *game_file_url(unsigned file, char room[32]);

/* game_agent.c: places that fail, lie, lag and restart */
void game_agents_make(struct game *g);
void game_agents_free(struct game *g);
void game_agents_step(struct game *g);
void game_agents_deliver(struct game *g); /* messages whose time has come */
void game_agents_cut(struct game *g);     /* the server died: connections and messages under way are gone */
void game_agents_check(struct game *g);   /* no job is alive twice */
struct game_agent *game_agent_named(struct game *g, const char *name);

/* game_user.c: users who submit and change their minds */
void game_user_submit(struct game *g);
void game_user_draft(struct game *g);      /* continues the draft */
void game_user_draft_drop(struct game *g); /* drops the draft: the core that has it is gone, or will be */
void game_user_act(struct game *g);
void game_user_release_all(struct game *g);
void game_user_order_node(struct game *g); /* an administrator drains, fails, resumes, ... a random node */
void game_user_bank_begin(struct game *g); /* accounts are opened */
void game_user_bank(struct game *g);       /* an order to the bank; while the game ends, much money */
void game_user_reserve(struct game *g);    /* a reservation is made, or ended */
void game_user_reserve_end_all(struct game *g);
void game_user_resume_all(struct game *g); /* all nodes */
void game_user_make_space(struct game *g); /* all files and lots of store 0 are removed */
