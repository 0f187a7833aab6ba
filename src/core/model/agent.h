/* agent: agents and their queues, with the offers that are parked and the attempts that they have. Both are
 * made when they are first heard of, in an event or in a session, and stay. */
#pragma once
#include "base/owners.h"
#include "core/core.h"
#include "core/model/job_class.h"
#include "core/model/losses.h"
#include "core/model/names.h"

struct agent_data;
struct reserved;

/* How long programs ran at a queue, in parts of what was expected of them (estimate/estimate.h). */
struct estimate_pace {
        double mean, variance;
        uint32_t count;
};

/* A countable resource of which a job was given some; of others the queue's ad says how many it has. */
struct queue_resource {
        symbol name;
        int64_t free, taken; /* taken: by attempts that the agent has not accepted yet */
};

/* A queue that refuses jobs of more classes than this waits for its next offer. */
#define REFUSED_MAX 8u

struct queue {
        char *name;
        struct core_agent *agent;
        struct ad *ad; /* NULL until the first offer */
        uint64_t serial;
        size_t ad_bytes;   /* of the offer's text */
        bool idle_session; /* it was not offered in this session of the agent yet */
        bool offers, job_specific, has_rank;
        size_t changed_at; /* 1-based place in core.changed; 0: not there */
        struct index_queue index;
        uint32_t jobs_left;
        int64_t cpus, memory_mib, disk_kib;   /* free, with what it takes ahead */
        int64_t total_cpus, total_memory_mib; /* INT64_MAX: it does not say */
        int64_t taken_cpus, taken_memory_mib,
                taken_disk_kib; /* by attempts that the agent has not accepted yet */
        uint32_t taken_jobs;
        enum core_wish wishes[CORE_WISHES_MAX];
        uint64_t
                refused[REFUSED_MAX]; /* serials of classes of which it refused a job, until its next offer */
        unsigned refused_count;
        struct queue_resource *resources;
        unsigned resource_count;
        struct owners owners;
        struct reserved *reserved;  /* NULL: nothing is kept there */
        double reserve_owed_ms;     /* processor time that reservations kept idle and that is not made good */
        int64_t reserve_owed_at_ms; /* steady clock: as of then */
        struct order_mark passed;   /* of what it was given to lately, what is furthest back */
        int64_t passed_ms;
        struct job *attempts;
        uint32_t attempt_count, running; /* of these, started */
        uint64_t finished;
        struct estimate_pace pace;
        struct cost_class *cost_class; /* NULL: it never had an ad */
        uint64_t seen;                 /* the choice in which it was last looked at (places.c) */
        double price, speed;           /* as its ad says; 0: it does not */
        unsigned search_order;         /* likewise; SEARCH_ORDER_NONE */
        double wait_s;     /* of a job at its batch system, as its ad says; 0: none; wait_unknown: a guess */
        int64_t begins_ms; /* when such a job would begin; 0: at once */
        bool wait_unknown; /* one would wait there, and nobody knows how long; its ad says so */
        int64_t *ends;     /* when its attempts will end, see busy.c */
        int64_t ends_at_ms;
        uint32_t ends_count;
        uint32_t promised;       /* jobs that wait for it (delay_scheduling.c) */
        char *closed;            /* it takes no jobs: why, as its ad says; owned; NULL: it does */
        int64_t paused_until_ms; /* its expressions took too long (overrun.h); steady; 0: they did not */
        char *unreachable;       /* what its runner stands on does not answer: why; owned; NULL: it does */
        bool logged;             /* an event named it: it is in snapshots. One that only offered is not */
        struct queue *next;      /* of the agent, by name */
};

struct core_agent {
        char *name;
        uint32_t number; /* from 1, as they were heard of */
        struct queue *queues;
        bool connected;
        int64_t renewed_steady_ms, renewed_wall_ms;
        uint64_t cleared; /* labels that it is cleared for, see label_cleared */
        struct node_record node;
        char *refuses;                /* it is given no jobs: why, by its node's state; owned; NULL: it is */
        char *labels;                 /* it is cleared for these at most, commas between; NULL: no bound */
        size_t queue_count, ad_bytes; /* of all its queues' offers */
        uint32_t names;               /* of attributes that its offers brought and nobody had used before */
        bool gone; /* an order was given while it was away: that nothing runs there is an admin's word */
        int64_t said_ms; /* when its word on its machine was last an event, by the steady clock; 0: never */
        struct node_losses losses;
        int64_t empty_since_ms;  /* it had no attempts since, by the steady clock, as far as plans of nodes
                                    have  looked; 0: it had some */
        uint32_t alone;          /* attempts that have the node for themselves */
        struct agent_data *data; /* what it holds and measured; NULL: it has not said */
};

static inline bool agent_takes_jobs(const struct core_agent *a) /* or may, when it has room */
{
        return a->connected && !a->refuses;
}

/* It may be given a job now, as far as it is not about the job. */
static inline bool agent_is_open(const struct core_agent *a, int64_t steady_ms)
{
        return !a->refuses && !a->alone && a->losses.until_ms <= steady_ms;
}

struct core_agent *agent_get(struct core *c, struct str name); /* makes it */
struct core_agent *agent_find(const struct core *c, const char *name);
struct queue *queue_get(struct core *c, struct core_agent *a, struct str name);
void agent_node_move(struct core_agent *a, const struct event *e); /* EVENT_NODE; the move is allowed */
uint32_t agent_attempts(const struct core_agent *a);               /* that it has, in all its queues */
void queue_attach(struct queue *q, struct job *j);
void queue_detach(struct queue *q, struct job *j);
/* Suspected jobs among its attempts have the node for themselves from now on (losses.h). */
void queue_mark_alone(struct core *c, struct queue *q);
void queue_accepted(struct queue *q, struct job *j); /* no-op when it was accepted before */
/* Writes what is free into its ad. What a queue takes ahead of its turn is no machine: never more than it
 * has. */
void queue_show_free(struct core *c, struct queue *q);
bool queue_allows_owner(const struct queue *q, const char *owner);
/* Denied as by owners_deny. */
struct str queue_denies_owner(const struct queue *q, const char *owner);
void agents_free(struct core *c);
struct core_agent **agents_sorted(struct core *c,
                                  size_t *ret_count); /* by name; the caller frees the array */
