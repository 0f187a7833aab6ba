/* pipe: a link that transfers share: each of n gets an n-th of the bandwidth.
 *
 * Times are milliseconds of the simulation. Latency is counted as the bytes that would pass in it. The owner
 * asks when the next transfer ends (sim_pipe_next), and at that time takes those that have (sim_pipe_ended);
 * adding or cancelling one changes when the others end.
 */
#pragma once
#include <stdint.h>

#include "base/heap.h"
#include "sim/site.h"

#define SIM_NEVER INT64_MAX

struct sim_pipe {
        double bytes_per_ms, latency_bytes;
        double served; /* bytes that a transfer under way since the start would have moved */
        int64_t at_ms; /* time up to which `served` counts */
        struct heap flows;
};
struct sim_flow {
        struct heap_node node;
        double ends; /* value of `served` at which it ends */
        struct sim_pipe *pipe;
        bool sends; /* the owner's: whether the transfer sends outputs */
};
void sim_pipe_init(struct sim_pipe *p, const struct sim_link *link);
void sim_pipe_deinit(struct sim_pipe *p); /* flows are left as they are */
void sim_pipe_add(struct sim_pipe *p, struct sim_flow *f, uint64_t bytes, int64_t now_ms);
void sim_pipe_cancel(struct sim_flow *f, int64_t now_ms);            /* no-op when it has ended */
int64_t sim_pipe_next(const struct sim_pipe *p);                     /* SIM_NEVER: nothing is under way */
struct sim_flow *sim_pipe_ended(struct sim_pipe *p, int64_t now_ms); /* NULL: none (any more) */
