/* inputs_private: struct inputs. inputs.c fills its rows; locality.c follows the chains from files to members
 * through the same rows, which are too large to be kept twice. Private to these two files. */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

struct file_identity;
struct idmap;
struct input;

struct inputs {
        const struct request *request; /* not used once the inputs are being removed */
        const struct part *part;
        uint64_t number; /* no other inputs have ever had it */
        struct input *shared;
        size_t shared_count, shared_cap;
        /* Members' own files: row m, place i is entry m * width + i; 0: no file. */
        /* Length of a row, 0 if members have no files of their own; number of rows filled. */
        uint32_t width, filled;
        uint64_t *ids;
        float *sizes;
        uint8_t *stores;
        /* Chains of entries with the same file: heads[hash] is the first one, after[entry] the next; both
         * count from 1, and INPUTS_NONE ends a chain. */
        uint32_t *heads, *after;
        uint32_t mask;
        struct inputs_from { /* members with a file of their own at a store */
                uint8_t store;
                struct set members;
        } * from;
        size_t from_count;
        struct idmap *localities; /* agent → struct locality; NULL: none yet */
        /* Until all rows are filled: spooled files by name, the request's (request_spooled_take; NULL:
         * nothing was spooled), and the ids of `shared`. */
        struct map *spooled;
        struct idmap *shared_ids;
        struct file_identity *file_identity; /* until all rows are filled */
        struct inputs *next;                 /* in core.filling or core.leaving */
        size_t entries, left; /* while they are being removed: total entries, and entries already out of
                                 core.wanted */
        bool leaves;
};
#define INPUTS_NONE 0

static inline uint32_t inputs_head(const struct inputs *in, uint64_t id)
{
        return (uint32_t)(id ^ id >> 32) & in->mask;
}
void inputs_destroy(struct inputs *in);
