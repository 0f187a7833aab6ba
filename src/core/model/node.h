/* node: the record of an agent's machine: its state, and who ordered it, when and why.
 *
 *                     connects                    no attempt is left
 *      booting -----------------> up --- drain ---> draining -------> drained
 *                                 ^ ^                  |  |              |
 *                                 | +----- resume -----+--|--------------+
 *                                 |                       v
 *                                 +-- well again --- failed (from up, draining or drained, and back there)
 *
 *      An unknown node and a retired one may boot. From every state: down (an administrator says that nothing
 *      runs there), retired (the node will not come again).
 *
 * Guarantees: only a node that is up gets jobs; a drained node has none. Only EVENT_NODE changes the state,
 * so it survives restarts of server and agent. Users see up as idle or busy, depending on the agent's
 * attempts.
 */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/sm.h"

/* Numbers are in the log. 0, of an agent without an order, is up. */
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

/* The machine that a provisioner has started for the node, or is starting. The record of a retired node still
 * names it. Texts are borrowed. */
struct node_instance {
        struct str provisioner, shape;
        struct str launch;   /* id of the launch token, different for each boot */
        struct str account;  /* account whose jobs the machine is for; empty: none */
        struct str id;       /* the provider's id of the machine; empty: not known */
        int64_t price_micro; /* price of an hour, in millionths */
        int64_t paid_until_ms;
        int64_t cost_micro; /* cost of the time that this record pays for; it counts in the month of the
                               event */
};
void node_instance_pack(struct buf *to, const struct node_instance *i);
int node_instance_unpack(struct str record, struct node_instance *ret); /* 0, -EBADMSG */

/* Cost of provisioners' machines in a month. */
struct node_spending {
        int64_t month; /* months since the year 0 */
        int64_t micro;
};
/* Adds an amount at that time; a later month begins at 0. */
void node_spending_add(struct node_spending *s, int64_t micro, int64_t at_ms);
int64_t node_spending_of(const struct node_spending *s, int64_t at_ms); /* in the month of at_ms, UTC */

struct node_record {
        enum node_state state, back; /* back: state that a failed node returns to when it is well */
        int64_t since_ms;
        int64_t deadline_ms; /* end of a drain: jobs that still run then go back to the queue; 0: no end */
        char *by, *reason;   /* owned; NULL: none */
        char *facts;    /* the node's description of its machine: lines of "name=value"; owned; NULL: none */
        char *instance; /* packed; owned; NULL: no provisioner has started a machine for the node */
        size_t instance_n;
        int64_t boot_ms; /* time from launch to connection at the last boot; 0: not known */
};
#define NODE_REPORT    1 /* code of an event by which a node that stays up reports that something is wrong */
#define NODE_BY_SERVER "the server"
#define NODE_BY_NODE   "the node"
/* A node whose end was foreseen; it returns in its former state. */
#define NODE_BY_LEAVE "the node, which leaves"
#define NODE_BY_WISH  "the wishlist"

static inline enum node_state node_state_of(const struct node_record *n)
{
        return n->state ? n->state : NODE_UP;
}
/* Returns false if there is no instance. */
bool node_instance_of(const struct node_record *n, struct node_instance *ret);
/* Frees the strings of the record. */
void node_deinit(struct node_record *n);
