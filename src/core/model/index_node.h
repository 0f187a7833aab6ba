/* index_node: what the index keeps in a class and in a queue (index/index.h). Nobody else looks at it, but
 * for the number of a class. */
#pragma once
#include "base/tree.h"

struct class;
struct index_bay;
struct index_group;
struct index_kind;

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
        struct class *class;
};
struct index_class {
        struct index_group *group;
        struct index_place in_group, in_owner;
        struct room need; /* no member needs less */
        uint64_t serial;
        size_t at; /* 1-based place in the index's list of all */
};
/* A queue's place in a bay. What the order looks at is what it was when it was put there. */
struct index_spot {
        struct tree_node node;
        struct room room, most; /* most: of all below it as well */
        struct index_bay *bay;  /* NULL: it is in none */
        size_t stale;           /* 1-based place in the list of those whose spot is to be looked at */
};
/* In a queue. */
struct index_queue {
        struct index_spot spot;
        struct index_kind *kind; /* NULL: it has no ad */
        struct tree_node node;   /* while it is parked */
        struct room most;        /* free, of this queue and all below it */
        uint64_t serial;
        bool listed;
};
