/* index_private: groups and kinds, for index.c and index_walk.c. */
#pragma once
#include "base/map.h"
#include "core/index/side.h"
#include "core/model/index_node.h"

/* Either of a group and a kind. Each has a list of those of the other sort that it meets; one that is gone is
 * taken out of such a list when somebody comes across it, and its struct lives until then. */
struct index_party {
        struct index_side side;
        struct index_party **meets;
        size_t meet_count, meet_cap, meet_clean; /* meet_clean: count after it was last cleaned */
        size_t users;                            /* classes or queues; 0: gone */
        size_t held;                             /* lists that it stands in */
        size_t at;                               /* 1-based place in the list of all */
};
struct index_owner {
        char *name;
        struct tree classes;
};
struct index_group {
        struct index_party party;
        struct tree classes; /* those with idle members */
        struct map *owners;  /* of them, by owner */
};
struct index_kind {
        struct index_party party;
        struct tree queues;      /* parked */
        struct index_bay **bays; /* the same queues by profile; none is empty */
        size_t bay_count, bay_cap;
};

struct index_parties {
        struct map *by_text;
        struct index_party **all;
        size_t count, cap;
        struct index_names names; /* that they show */
};
struct index {
        struct index_parties groups, kinds;
        struct class **classes;
        struct queue **queues;
        size_t class_count, class_cap, queue_count, queue_cap;
        size_t class_slice, queue_slice; /* so many of the lists know all names; SIZE_MAX: all do */
        struct queue **stale;            /* whose spot is to be looked at */
        size_t stale_count, stale_cap;
        uint64_t serial;
};

static inline struct index_group *index_group_of(struct index_party *p)
{
        return container_of(p, struct index_group, party);
}
static inline struct index_kind *index_kind_of(struct index_party *p)
{
        return container_of(p, struct index_kind, party);
}
/* index_bay.c */
void index_bay_later(struct index *x, struct queue *q); /* its spot is to be looked at */
void index_bay_leave(struct queue *q);                  /* at once, for its kind may go */
void index_kind_empty(struct index_kind *k);            /* of its bays, whatever they hold */

struct room index_queue_room(const struct queue *q);
bool room_within(const struct room *need, const struct room *has);
/* The n-th party that p meets, or NULL; those that are gone are taken out. */
struct index_party *index_meet(struct index_party *p, size_t n);
