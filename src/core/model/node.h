/* node: the record of an agent's machine: what is to become of it, who has said so, when and why.
 *
 *                     connects                    no attempt is left
 *      booting -----------------> up --- drain ---> draining -------> drained
 *                                 ^ ^                  |  |              |
 *                                 | +----- resume -----+--|--------------+
 *                                 |                       v
 *                                 +-- well again --- failed (from up, draining or drained, and back there)
 *
 *      A node that nothing was heard of yet, and one that is retired, may boot. From every state: down (an
 *      admin says that nothing runs there), retired (it will not come again).
 *
 * What is guaranteed: only a node that is up is given jobs; one that is drained has none. A record is changed
 * by EVENT_NODE only, so it outlives restarts of everybody. Up is shown as idle or busy, by the attempts that
 * the agent has.
 */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/sm.h"

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

/* The machine that a provisioner has started for it, or is starting. Retired, the record still says which one
 * it was. Texts are borrowed. */
struct node_instance {
        struct str provisioner, shape;
        struct str launch;   /* the id of its token: each boot has its own */
        struct str account;  /* for whose jobs; empty: nobody's */
        struct str id;       /* as the provider calls it; empty: not known */
        int64_t price_micro; /* of an hour, in millionths */
        int64_t paid_until_ms;
        int64_t cost_micro; /* of what this record pays for: it counts in the month of the event */
};
void node_instance_pack(struct buf *to, const struct node_instance *i);
int node_instance_unpack(struct str record, struct node_instance *ret); /* 0, -EBADMSG */

/* What machines of provisioners cost in a month. */
struct node_spending {
        int64_t month; /* since the year 0 */
        int64_t micro;
};
void node_spending_add(struct node_spending *s, int64_t micro, int64_t at_ms);
int64_t node_spending_of(const struct node_spending *s, int64_t at_ms); /* in the month of that time, UTC */

struct node_record {
        enum node_state state, back; /* back: where one that failed goes when it is well again */
        int64_t since_ms;
        int64_t deadline_ms; /* of a drain: what still runs then goes back to the queue; 0: it may finish */
        char *by, *reason;   /* owned; NULL: nobody, none */
        char *facts;         /* what it says of its machine: lines of "name=value"; owned; NULL: nothing */
        char *instance;      /* packed; owned; NULL: no provisioner has anything to do with it */
        size_t instance_n;
        int64_t boot_ms; /* from its launch until it connected, the last time; 0: never */
};
#define NODE_BY_SERVER "the server"
#define NODE_BY_NODE   "the node"
#define NODE_BY_WISH   "the wishlist"

static inline enum node_state node_state_of(const struct node_record *n)
{
        return n->state ? n->state : NODE_UP;
}
/* False: there is none. */
bool node_instance_of(const struct node_record *n, struct node_instance *ret);
void node_deinit(struct node_record *n);
