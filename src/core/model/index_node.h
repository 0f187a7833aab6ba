/* index_node: what the index keeps in a class and in a queue (index/index.h). Nobody else looks at it, but
 * for the number of a class. */
#pragma once
#include "base/tree.h"

struct job_class;
struct offer_bin;
struct job_signature;
struct offer_signature;

/* What trees leave out by: processors, memory, disk. How much there is of other resources is seen when a pair
 * is looked at; that there is none at all, by the index. */
#define ROOM_KINDS 3
struct room {
        int64_t v[ROOM_KINDS];
};

/* In a class. */
struct index_place {
        struct tree_node node;
        struct room least; /* needed, of this class and all below it */
        struct job_class *job_class;
};
struct index_class {
        struct job_signature *signature;
        struct index_place in_group, in_owner;
        struct room need; /* no member needs less */
        uint64_t serial;
        size_t at; /* 1-based place in the index's list of all */
};
/* A queue's place in a bin. What the order looks at is what it was when it was put there. */
struct index_spot {
        struct tree_node node;
        struct room room, most; /* most: of all below it as well */
        struct offer_bin *bin;  /* NULL: it is in none */
        size_t stale;           /* 1-based place in the list of those whose spot is to be looked at */
};
/* In a queue. */
struct index_queue {
        struct index_spot spot;
        struct offer_signature *signature; /* NULL: it has no ad */
        struct tree_node node;             /* while it is parked */
        struct room most;                  /* free, of this queue and all below it */
        uint64_t serial;
        bool listed;
};
