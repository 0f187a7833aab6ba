/* The names of placement policies; what each does is in core/match/policy.h. */
#include <errno.h>

#include "core/core.h"

static const char *const names[CORE_PLACEMENTS] = {
        [CORE_PLACE_COST] = "cost",           [CORE_PLACE_BLIND] = "blind",
        [CORE_PLACE_FIFO] = "fifo",           [CORE_PLACE_CACHED] = "cached",
        [CORE_PLACE_PASSIVE] = "passive",     [CORE_PLACE_CLUSTER] = "cluster_monitor",
        [CORE_PLACE_QUEUE] = "queue_monitor",
};

const char *core_placement_name(enum core_placement p)
{
        return names[p];
}

int core_placement_parse(struct str name, enum core_placement *ret)
{
        for (int i = 0; i < CORE_PLACEMENTS; i++)
                if (str_eqz(name, names[i])) {
                        *ret = (enum core_placement)i;
                        return 0;
                }
        return -EINVAL;
}

int core_placement_of_job(struct str name, enum core_placement *ret)
{
        enum core_placement p;

        if (core_placement_parse(name, &p) != 0 || p == CORE_PLACE_FIFO)
                return -EINVAL;
        *ret = p;
        return 0;
}
