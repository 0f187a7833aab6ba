#include "core/model/node.h"

#include <stdlib.h>

static const char *const names[NODE_STATES] = {
        [NODE_UP] = "up",           [NODE_BOOTING] = "booting", [NODE_DRAINING] = "draining",
        [NODE_DRAINED] = "drained", [NODE_FAILED] = "failed",   [NODE_DOWN] = "down",
        [NODE_RETIRED] = "retired",
};

#define ENDS   (SM_TO(NODE_DOWN) | SM_TO(NODE_RETIRED))
#define DRAINS (SM_TO(NODE_DRAINING) | SM_TO(NODE_DRAINED))

/* A move to the state that it is in says anew who, why and until when. */
static const uint32_t moves[NODE_STATES] = {
        [NODE_UP] = SM_TO(NODE_UP) | SM_TO(NODE_DRAINING) | SM_TO(NODE_FAILED) | ENDS,
        [NODE_BOOTING] = SM_TO(NODE_BOOTING) | SM_TO(NODE_UP) | SM_TO(NODE_FAILED) | DRAINS | ENDS,
        [NODE_DRAINING] = SM_TO(NODE_UP) | SM_TO(NODE_FAILED) | DRAINS | ENDS,
        [NODE_DRAINED] = SM_TO(NODE_UP) | SM_TO(NODE_FAILED) | SM_TO(NODE_BOOTING) | DRAINS | ENDS,
        [NODE_FAILED] = SM_TO(NODE_UP) | SM_TO(NODE_FAILED) | SM_TO(NODE_BOOTING) | DRAINS | ENDS,
        [NODE_DOWN] = SM_TO(NODE_UP) | SM_TO(NODE_BOOTING) | SM_TO(NODE_DRAINING) | ENDS,
        [NODE_RETIRED] = SM_TO(NODE_UP) | SM_TO(NODE_BOOTING) | SM_TO(NODE_RETIRED),
};

const struct sm node_states = {"node", names, moves, NODE_STATES};

void node_deinit(struct node_record *n)
{
        free(n->by);
        free(n->reason);
        free(n->facts);
}
