/* inputs_private: what inputs.c and locality.c share. */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

struct file_identity;
struct idmap;
struct input;

struct inputs {
        const struct request *request; /* not looked at once the inputs leave */
        const struct part *part;
        struct input *shared;
        size_t shared_count, shared_cap;
        /* Files of the members' own: row m, place i is entry m * width + i; 0 is no file. */
        uint32_t width, filled; /* width 0: they have none */
        uint64_t *ids;
        float *sizes;
        uint8_t *stores;
        /* Which entries have a file: heads[hash] is the first one, after[entry] the next; both count from 1,
         * and INPUTS_NONE ends.
         */
        uint32_t *heads, *after;
        uint32_t mask;
        struct inputs_from { /* which members have a file of their own at a store */
                uint8_t store;
                struct set members;
        } * from;
        size_t from_count;
        struct idmap *localities; /* agent → struct near; NULL: none yet */
        struct map *spooled;      /* by name, until all rows are filled; NULL: nothing was spooled */
        struct file_identity *file_identity; /* likewise */
        struct inputs *next;                 /* in core.filling or core.leaving */
        size_t entries, left; /* of those that leave: how many there were, and are out of core.wanted */
        bool leaves;
};
#define INPUTS_NONE 0

static inline uint32_t inputs_head(const struct inputs *in, uint64_t id)
{
        return (uint32_t)(id ^ id >> 32) & in->mask;
}
void inputs_destroy(struct inputs *in);
