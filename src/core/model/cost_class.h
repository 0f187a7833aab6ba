/* cost_class: a group of places that cost the same (maintained by data/cost_class.h). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define SEARCH_ORDER_NONE 65535u /* last of all: the place gives no order */

struct queue;
/* Files under way from a store (inflight_transfers.h). */
struct link_load {
        uint64_t bytes;
        uint32_t files;
};
struct cost_class_link {
        double latency_us, bytes_per_s, bytes_per_s_out;
        struct link_load load; /* sum over all agents that have a queue in the cost class */
        bool down;             /* the store answers none of these agents */
};
struct cost_class {
        unsigned users;                 /* queues */
        struct queue *queues;           /* the next of them to be looked at; the others follow in a ring */
        unsigned refs;                  /* queues, and bins of the index */
        double slowness, price, wait_s; /* wait_s: wait of a job at the batch system, as given or guessed */
        unsigned search_order;
        uint64_t loaded; /* data.load_changes as of the last change of a load that was counted here */
        uint64_t asked;  /* number of the search of places.c that computed cost and least */
        double cost, least;
        size_t link_count; /* stores in their order, and last the server's spool */
        struct cost_class_link links[];
};

static inline struct cost_class *cost_class_ref(struct cost_class *p)
{
        p->refs++;
        return p;
}

static inline void cost_class_unref(struct cost_class *p)
{
        if (p && --p->refs == 0)
                free(p);
}
