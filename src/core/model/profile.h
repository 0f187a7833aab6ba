/* profile: what places that cost the same have in common (data/profile.h keeps it). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define SEARCH_ORDER_NONE 65535u /* of who says none: the last */

/* Files that are on their way from a store (coming.h). */
struct link_load {
        uint64_t bytes;
        uint32_t files;
};
struct profile_link {
        double latency_us, bytes_per_s, bytes_per_s_out;
        struct link_load load; /* of all agents that have a queue in the profile */
        bool down;             /* the store does not answer any of them */
};
struct profile {
        unsigned users;                 /* queues */
        unsigned refs;                  /* these, and bays of the index */
        double slowness, price, wait_s; /* wait_s: of a job at the place's batch system, or a guess */
        unsigned search_order;
        uint64_t loaded; /* the change of a load that it has seen */
        uint64_t asked;  /* in this search of places.c the two below were computed */
        double cost, least;
        size_t link_count; /* one for each store and, last, the server's spool */
        struct profile_link links[];
};

static inline struct profile *profile_ref(struct profile *p)
{
        p->refs++;
        return p;
}

static inline void profile_unref(struct profile *p)
{
        if (p && --p->refs == 0)
                free(p);
}
