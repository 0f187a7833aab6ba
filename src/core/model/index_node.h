/* index_node: the index's data in a class and in a queue (index/index.h). Other modules use only the serial
 * of a class.
 */
#pragma once
#include "base/tree.h"

struct job_class;
struct offer_bin;
struct job_signature;
struct offer_signature;

/* Resources by which trees skip subtrees: processors, memory, disk. The index itself knows queues that have
 * none of another resource; quantities of other resources are compared pair by pair. */
#define ROOM_KINDS 3
struct room {
        int64_t v[ROOM_KINDS];
};

/* The index's data of a class in one tree. */
struct index_place {
        struct tree_node node;
        struct room least; /* least need of this class and of all below it */
        struct job_class *job_class;
};
struct index_class {
        struct job_signature *signature;
        struct index_place in_signature, in_owner;
        struct room need; /* no member needs less */
        uint64_t serial;
        size_t at; /* 1-based position in the index's list of all classes */
};
/* A queue's place in a bin. The tree's order uses the values at the time of insertion. */
struct index_spot {
        struct tree_node node;
        struct room room, most; /* most: maximum over this queue and all below it */
        struct offer_bin *bin;  /* NULL: the queue is in no bin */
        size_t stale;           /* 1-based position in the list of spots to be updated; 0: not listed */
};
/* The index's data of a queue. */
struct index_queue {
        struct index_spot spot;
        struct offer_signature *signature; /* NULL: the queue has no ad */
        struct tree_node node;             /* linked while the queue is parked */
        struct room most;                  /* most free resources of this queue and all below it */
        uint64_t serial;
        bool listed;
};
