/* nodes: carries out orders for nodes, and detects silent nodes (model/node.h has the states). */
#pragma once
#include "core/model/names.h"
#include <stdint.h>

/* Carries out drains, failures and retirements on the nodes' attempts, in slices, and marks silent nodes as
 * failed. Returns the milliseconds to the next look; INT64_MAX: there is none. */
int64_t nodes_tick(struct core *c);
/* Called when the agent's session begins: a node that was booting or silent is up again. */
void nodes_connected(struct core *c, struct core_agent *a);
void nodes_event(struct core *c, const struct event *e); /* called after a live event was applied */
/* The statements about the machine in a queue's ad: health, facts, whether the node drains itself, and
 * whether the queue takes no jobs at present. */
struct node_word {
        char *unwell, *drains, *closes; /* reason; NULL: not so */
        char *notifies;                 /* what an admin should know; NULL: nothing */
        int64_t drain_ms;               /* how long jobs may go on when it drains; 0: to their end */
        char *leaves;                   /* reason why the agent is about to end; NULL: it is not */
        char *facts;                    /* lines of "name=value"; NULL: none */
};
#define NODE_WORD_CLEANUP __attribute__((cleanup(node_word_deinit)))
/* Reads the statements of an ad; the caller calls node_word_deinit. */
void node_word_read(struct core *c, const struct ad *ad, struct node_word *ret);
void node_word_deinit(struct node_word *w);
/* Acts on the statements of an ad of the agent, in events at a limited rate. */
void nodes_offered(struct core *c, struct core_agent *a, const struct node_word *w);
/* Drains the node if it has lost too many unrelated jobs. Called after each loss there. */
void nodes_lost(struct core *c, struct core_agent *a);
