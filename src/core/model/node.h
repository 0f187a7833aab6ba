/* node: the record of an agent's machine: what is to become of it, who has said so, when and why.
 *
 *                     connects                    no attempt is left
 *      booting -----------------> up --- drain ---> draining -------> drained
 *                                 ^ ^                  |  |              |
 *                                 | +----- resume -----+--|--------------+
 *                                 |                       v
 *                                 +-- well again --- failed (from up, draining or drained, and back there)
 *
 *      From every state: down (an admin says that nothing runs there), retired (it will not come again).
 *
 * What is guaranteed: only a node that is up is given jobs; one that is drained has none. A record is changed
 * by EVENT_NODE only, so it outlives restarts of everybody. Up is shown as idle or busy, by the attempts that
 * the agent has.
 */
#pragma once
#include <stdint.h>

#include "base/sm.h"
#include "base/str.h"

/* Numbers are in the log. 0, of an agent that nothing was said of, is up. */
enum node_state {
        NODE_UP = 1,
        NODE_BOOTING,
        NODE_DRAINING,
        NODE_DRAINED,
        NODE_FAILED,
        NODE_DOWN,
        NODE_RETIRED,
        NODE_STATES
};
extern const struct sm node_states;

struct node_record {
        enum node_state state, back; /* back: where one that failed goes when it is well again */
        int64_t since_ms;
        int64_t deadline_ms; /* of a drain: what still runs then goes back to the queue; 0: it may finish */
        char *by, *reason;   /* owned; NULL: nobody, none */
        char *facts;         /* what it says of its machine: lines of "name=value"; owned; NULL: nothing */
};
#define NODE_BY_SERVER "the server"
#define NODE_BY_NODE   "the node"

static inline enum node_state node_state_of(const struct node_record *n)
{
        return n->state ? n->state : NODE_UP;
}
void node_deinit(struct node_record *n);
