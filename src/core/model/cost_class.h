/* cost_class: what places that cost the same have in common (data/cost class.h keeps it). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define SEARCH_ORDER_NONE 65535u /* of who says none: the last */

/* Files that are on their way from a store (inflight_transfers.h). */
struct link_load {
        uint64_t bytes;
        uint32_t files;
};
struct cost_class_link {
        double latency_us, bytes_per_s, bytes_per_s_out;
        struct link_load load; /* of all agents that have a queue in the cost class */
        bool down;             /* the store does not answer any of them */
};
struct cost_class {
        unsigned users;                 /* queues */
        unsigned refs;                  /* these, and bins of the index */
        double slowness, price, wait_s; /* wait_s: of a job at the place's batch system, or a guess */
        unsigned search_order;
        uint64_t loaded; /* the change of a load that it has seen */
        uint64_t asked;  /* in this search of places.c the two below were computed */
        double cost, least;
        size_t link_count; /* one for each store and, last, the server's spool */
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
