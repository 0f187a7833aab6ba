/* nodes: orders for nodes, and what follows from them and from silence (model/node.h has the states). */
#pragma once
#include "core/model/names.h"
#include <stdint.h>

/* Nodes that are told to drain, fail or go; what runs there, and what becomes of it by time. Milliseconds to
 * the next look, INT64_MAX: there is none. */
int64_t nodes_tick(struct core *c);
/* Its session is there: one that booted or was silent is up again. */
void nodes_connected(struct core *c, struct core_agent *a);
void nodes_event(struct core *c, const struct event *e); /* it was applied, live */
/* What the ad of a queue says of the machine: whether it is well, what it is, whether it drains itself, and
 * whether the queue takes no jobs now. */
struct node_word {
        char *unwell, *drains, *closes; /* why; NULL: not so */
        char *facts;                    /* lines of "name=value"; NULL: none */
};
#define NODE_WORD_CLEANUP __attribute__((cleanup(node_word_deinit)))
void node_word_read(struct core *c, const struct ad *ad, struct node_word *ret);
void node_word_deinit(struct node_word *w);
void nodes_offered(struct core *c, struct core_agent *a, const struct node_word *w);
/* An attempt was lost there: a node that takes everything down is drained. */
void nodes_lost(struct core *c, struct core_agent *a);
