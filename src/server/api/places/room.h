/* room: the processors and the memory of an agent's machine, of the ads of its queues.
 *
 * The process queues of a machine share it, so the largest of them counts; a queue of a batch system counts
 * for itself. Core thread, which owns the ads. */
#pragma once
#include "classad/eval.h"
#include "core/query.h"

struct room {
        uint64_t cpus, memory_mib, free_cpus, free_memory_mib; /* free: 0 of a queue that offers nothing */
};
/* The queues of one agent. {0} at first. */
struct agent_room {
        struct room shared; /* the largest of its process queues */
        struct room apart;  /* the sum of the others */
};
struct room_reader {
        struct eval eval;
        symbol cpus, memory, free_cpus, free_memory, runner;
};

void room_reader_init(struct room_reader *r, struct core *c, int64_t now_ms);
void room_reader_deinit(struct room_reader *r);
/* Adds a queue, which has an ad. Returns its own room. */
struct room room_add_queue(struct room_reader *r, struct agent_room *to, const struct core_queue_view *q);
void room_add(struct room *to, const struct room *r);
/* Returns what all queues that were added have together. */
struct room room_of(const struct agent_room *a);
