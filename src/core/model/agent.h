/* agent: agents and their queues, with the queues' current offers and the attempts placed there.
 *
 * An agent or a queue is created when an event or a session first names it, and is kept until agents_free.
 */
#pragma once
#include "base/job/owners.h"
#include "core/core.h"
#include "core/model/job_class.h"
#include "core/model/losses.h"
#include "core/model/names.h"

struct advance_place;
struct agent_data;
struct reserved;

/* Run times at a queue relative to the expected ones (estimate/estimate.h). */
struct estimate_pace {
        double mean, variance;
        uint32_t count;
};

/* Attempts at a queue as measured since the server began, newer ones weighing more; 0: none was measured. */
struct queue_measures {
        double wait_ms;   /* from being given to the queue until the start */
        double gap_ms;    /* between the ends of two attempts */
        int64_t ended_ms; /* the last end */
};

/* A countable resource of the queue that some job was given. For other resources the queue's ad says how many
 * are free. */
struct queue_resource {
        symbol name;
        int64_t free, taken; /* taken: by attempts that the agent has not accepted yet */
};

/* A queue that has refused jobs of more than this many classes gets no further job until its next offer. */
#define REFUSED_MAX 8u

struct queue {
        char *name;
        struct core_agent *agent;
        struct ad *ad; /* NULL until the first offer */
        uint64_t serial;
        size_t ad_bytes;   /* size of the offer's text */
        bool idle_session; /* the queue has not been offered in the agent's present session */
        bool offers, job_specific, has_rank;
        size_t changed_at; /* 1-based index in pending_match.changed; 0: not listed */
        struct index_queue index;
        uint32_t jobs_left;
        int64_t cpus, memory_mib, disk_kib;   /* free, including what the queue accepts ahead of time */
        int64_t total_cpus, total_memory_mib; /* INT64_MAX: the ad does not say */
        int64_t taken_cpus, taken_memory_mib,
                taken_disk_kib; /* by attempts that the agent has not accepted yet */
        uint32_t taken_jobs;
        enum core_wish wishes[CORE_WISHES_MAX];
        /* Serials of the classes of which the queue has refused a job since its last offer. */
        uint64_t refused[REFUSED_MAX];
        unsigned refused_count;
        struct queue_resource *resources;
        unsigned resource_count;
        struct owners owners;
        struct advance_place *advance; /* advance reservations at the queue; NULL: none */
        struct reserved *reserved;     /* room reserved for idle jobs (gang/reserve.h); NULL: none */
        double reserve_owed_ms;     /* processor time that reservations kept idle and that is not made up for
                                       yet */
        int64_t reserve_owed_at_ms; /* steady clock: the time for which reserve_owed_ms holds */
        struct order_mark passed; /* the position furthest back in the order among the classes that were given
                                     room here lately */
        int64_t passed_ms;
        struct job *attempts;
        uint32_t attempt_count, running; /* running: attempts that have started */
        uint64_t finished;
        struct estimate_pace pace;
        struct queue_measures measures;
        uint64_t given_turn;           /* matching.turns when the queue was last given jobs; 0: not yet */
        struct cost_class *cost_class; /* NULL: the queue has had no ad yet */
        struct queue *class_next, *class_prev; /* others of the cost class, in a ring */
        uint64_t seen;         /* number of the last search that looked at the queue (places.c) */
        double price, speed;   /* from the ad; 0: not given */
        unsigned search_order; /* from the ad; SEARCH_ORDER_NONE: not given */
        double wait_s; /* wait of a job at the queue's batch system, from the ad; 0: none. With wait_unknown a
                          guess. */
        int64_t begins_ms; /* time at which a job submitted to the batch system would begin; 0: at once */
        bool wait_unknown; /* the ad says that a job would wait for an unknown time */
        int64_t *ends;     /* estimated ends of its attempts, see busy.c */
        int64_t ends_at_ms;
        uint32_t ends_count;
        uint32_t promised; /* jobs that wait for a place in this queue (delay_scheduling.c) */
        char *closed;      /* reason, from the ad, why the queue takes no jobs; owned; NULL: it takes jobs */
        int64_t paused_until_ms; /* steady clock: no matching until then, since expressions took too long
                                    (overrun.h); 0: no pause */
        char *unreachable;  /* reason why the system behind the queue does not answer the agent; owned; NULL:
                               it answers */
        bool logged;        /* an event has named the queue, so it is part of snapshots; a queue that was only
                               offered is not */
        struct queue *next; /* next queue of the agent, sorted by name */
};

struct core_agent {
        char *name;
        uint32_t number; /* from 1, in the order in which agents became known */
        struct queue *queues;
        bool connected;
        int64_t renewed_steady_ms, renewed_wall_ms;
        uint64_t cleared; /* labels of data that the agent is cleared for, see label_cleared */
        struct node_record node;
        char *refuses; /* reason why the state of the node keeps jobs away; owned; NULL: the agent gets
                          jobs */
        char *labels;  /* labels that bound `cleared`, comma-separated; owned; NULL: no bound */
        size_t queue_count, ad_bytes; /* ad_bytes: of the offers of all its queues */
        uint32_t names;               /* attribute names that no one had used before the agent's offers */
        bool gone;       /* the last order came while the agent was away; if it was down or retired, an
                            administrator says that nothing runs there */
        int64_t said_ms; /* steady clock: time of the last event made of the agent's statement about its
                            machine; 0: never */
        struct node_losses losses;
        int64_t empty_since_ms;  /* steady clock: time since which the agent has had no attempts, as seen by
                                    plans of nodes; 0: it has some */
        uint32_t alone;          /* attempts that have the node to themselves */
        struct agent_data *data; /* data that the agent holds, and its measured links; NULL: not reported */
};

/* Returns whether the agent takes jobs when it has room. */
static inline bool agent_takes_jobs(const struct core_agent *a)
{
        return a->connected && !a->refuses;
}

/* Returns whether the agent may be given a job now, as far as that does not depend on the job. */
static inline bool agent_is_open(const struct core_agent *a, int64_t steady_ms)
{
        return !a->refuses && !a->alone && a->losses.until_ms <= steady_ms;
}

struct core_agent *agent_get(struct core *c, struct str name); /* finds the agent, or creates it */
struct core_agent *agent_find(const struct core *c, const char *name);
struct queue *queue_find(const struct core *c, const char *agent,
                         const char *queue); /* NULL: there is none */
/* Finds the agent's queue, or creates it. */
struct queue *queue_get(struct core *c, struct core_agent *a, struct str name);
/* Applies EVENT_NODE, whose move the caller has checked. */
void agent_node_move(struct core_agent *a, const struct event *e);
uint32_t agent_attempts(const struct core_agent *a); /* number of attempts in all its queues */
/* Adds the job's attempt to the queue, and its resources to the taken ones until it is accepted. */
void queue_attach(struct queue *q, struct job *j);
/* Removes an attempt that has ended; the queue becomes the job's last_queue. */
void queue_detach(struct queue *q, struct job *j);
/* Gives suspected jobs among the queue's attempts the node to themselves from now on (losses.h). */
void queue_mark_alone(struct core *c, struct queue *q);
/* Marks the attempt as accepted; no-op if it is already. */
void queue_accepted(struct queue *q, struct job *j);
/* Writes the free resources into the queue's ad, each at most the machine's total: what a queue accepts ahead
 * of time is no additional hardware. */
void queue_show_free(struct core *c, struct queue *q);
/* Returns whether the queue's last offer is open to this owner's jobs. */
bool queue_allows_owner(const struct queue *q, const char *owner);
/* Returns the denial of this owner, as owners_deny does. */
struct str queue_denies_owner(const struct queue *q, const char *owner);
void agents_free(struct core *c);
/* Returns all agents, sorted by name; the caller frees the array. */
struct core_agent **agents_sorted(struct core *c, size_t *ret_count);
