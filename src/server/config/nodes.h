/* nodes: the section "nodes" of the settings: what happens to failed nodes, and to jobs that were lost
 * with them. */
#pragma once
#include "core/core.h"

struct doc;
struct config_nodes { /* 0: the core's default */
        uint32_t max_lost;
        int64_t lost_pause_ms, silent_ms;
        bool keep_lossy;
};
/* `place` is a struct config_nodes, which is replaced. Returns 0, or -EINVAL with err that names file and
 * line. */
int config_nodes_read(void *place, const struct doc *d, struct err *err);
void config_nodes_config(const struct config_nodes *n, struct core_config *ret);
