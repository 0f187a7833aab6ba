/* run_state: the state of a run, shared by run.c and run_*.c. */
#pragma once
#include "base/heap.h"
#include "base/map.h"
#include "place/cache_policy.h"
#include "sim/guess.h"
#include "sim/pipe.h"
#include "sim/random.h"
#include "sim/run.h"
#include "sim/world.h"

enum timer_kind {
        TIMER_PIPE,
        TIMER_ATTEMPT,
        TIMER_PLACE,
        TIMER_RENEW,
        TIMER_TICK,
        TIMER_OUTAGE,
        TIMER_PLAN,
        TIMER_CUT
};
struct timer {
        struct heap_node node; /* while it is set */
        int64_t at_ms;
        uint64_t order; /* order of setting, in which timers of the same time fire */
        enum timer_kind kind;
};

struct run_pipe { /* from a cluster to a store */
        struct timer timer;
        struct sim_pipe pipe;
};

enum attempt_state {
        ATTEMPT_WAITING, /* for the others of its gang */
        ATTEMPT_DELAYED,
        ATTEMPT_FETCHING,
        ATTEMPT_RUNNING,
        ATTEMPT_SENDING
};
struct attempt {
        struct timer timer;
        struct sim_flow sending;
        struct place *place;
        struct attempt *next, *prev; /* of the place */
        uint64_t request;
        uint32_t member, fence, job;
        enum attempt_state state;
        uint32_t fetches; /* fetches that it still waits for */
        int64_t run_from, run_to;
        uint64_t bytes_in;
};

/* A file on its way into a place's cache. */
struct fetch {
        struct sim_flow flow;
        struct place *place;
        uint32_t file;
        struct attempt **waiters;
        uint32_t count, cap;
};

struct place {
        struct timer timer;  /* its next failure, or the end of its repair or boot */
        int64_t launched_ms; /* of a node that comes and goes: when it was started; -1: there is none */
        char *name;
        const struct sim_cluster *cluster;
        uint32_t cluster_index, number; /* number: within the cluster */
        bool up, dirty, offer_wanted;
        struct timer cut;  /* beginning of the next cut, end of its leases in a cut, or end of the cut */
        int64_t cut_until; /* 0: it is connected */
        int64_t renewed;   /* when its leases were renewed last */
        unsigned session;
        uint64_t serial;
        uint32_t free_cpus;
        uint64_t free_memory_mib;
        struct attempt *attempts;
        struct cache_policy cache;
        struct idmap *fetches;  /* by file */
        struct core_file *came; /* came, went: changes of the cache not yet reported to the core */
        size_t came_count, came_cap;
        uint64_t *went;
        size_t went_count, went_cap;
};

struct outage {
        struct timer timer;            /* when it begins, then when it ends */
        uint32_t cluster_index, agent; /* agent: SIM_ALL_AGENTS, or a place's number */
        int64_t to_ms;
        bool on;
};

struct waiting_gang {
        uint64_t request;
        uint32_t member, job; /* first of the gang */
        int64_t kept_ms;      /* time from which places were first kept for the gang; 0: not yet */
};

struct run {
        const struct sim_run_options *o;
        const struct sim_workload *w;
        const struct sim_site *site;
        struct sim_measures *m;
        struct sim_world *world;
        struct sim_random random;
        struct heap timers;
        uint64_t timer_order;
        struct timer renew, tick, plan;
        struct cloud *cloud; /* NULL: all agents are always there */
        struct outage *outages;
        size_t outage_count, outages_on;
        struct place *places;
        size_t place_count;
        struct map *places_by_name;
        struct place **dirty; /* places whose changes are not yet reported to the core */
        size_t dirty_count, dirty_cap;
        struct run_pipe *pipes; /* cluster * clusters + store */
        struct sim_times *times;
        int64_t *lost_at;   /* of each job: when its last attempt was lost; 0: none was, or it runs again */
        uint32_t *waits;    /* of each job: parents that have not ended */
        uint64_t *file_ids; /* as the core numbers them */
        uint32_t *first_of; /* first job of each request */
        size_t first_cap;
        struct waiting_gang *gangs; /* gangs that have not started yet */
        size_t gang_count, gang_cap;
        size_t gangs_kept;           /* number of gangs for which places are kept */
        bool again;                  /* the core was told something in answer to this turn */
        struct sim_guesses *guesses; /* NULL: not measured */
        uint64_t *asked;             /* requests of this turn, about which the core is to be asked */
        size_t asked_count, asked_cap;
        uint64_t ended, waiting, held; /* held: attempts that agents have */
        double used_cpu_s;
};

void run_timer_set(struct run *r, struct timer *t, int64_t at_ms);
int64_t run_lease(const struct run *r);
void run_timer_stop(struct run *r, struct timer *t);
static inline int64_t run_now(const struct run *r)
{
        return sim_world_now(r->world);
}

/* run_jobs.c: the users */
void run_submit(struct run *r, uint32_t first);  /* a job, and those that go together with it */
void run_job_ended(struct run *r, uint32_t job); /* submits the jobs that waited for it only */
void run_file_url(uint32_t cluster, uint32_t file, char *room, size_t size);

/* run_place.c: the agents */
void run_places_make(struct run *r);
void run_places_free(struct run *r);
void run_place_start(struct run *r, struct place *p);
void run_place_take(struct run *r, struct place *p, const struct sim_action *a);
void run_place_timer(struct run *r, struct place *p); /* the place fails, or is repaired */
void run_cut_timer(struct run *r,
                   struct place *p); /* the place is cut off, its leases end, or it is connected again */
void run_outages_make(struct run *r, int64_t start_ms);
void run_outage_timer(struct run *r, struct outage *o);
void run_places_tell(struct run *r); /* reports changed offers and caches to the core */
void run_attempt_timer(struct run *r, struct attempt *t);
void run_pipe_timer(struct run *r, struct run_pipe *p);

/* run_cloud.c: nodes that come and go */
bool run_place_is_cloud(const struct place *p);
void run_cloud_make(struct run *r);
void run_cloud_free(struct run *r);
void run_cloud_plan(struct run *r);
void run_cloud_retire(struct run *r, struct place *p, const char *why);
void run_cloud_end(struct run *r, int64_t makespan_ms);

/* run_gangs.c: waiting gangs */
void run_gangs_submitted(struct run *r, uint64_t request, uint32_t first);
void run_gangs_look(struct run *r); /* after each turn */
void run_gangs_start(struct run *r, uint64_t request, uint32_t member);
void run_gangs_given(struct run *r, uint32_t job); /* any job was given to a place */
