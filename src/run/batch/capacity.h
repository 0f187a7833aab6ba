/* capacity: asks the system at intervals how many nodes it has and how many are free. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct batch;
struct nodes;

struct nodes *batch_nodes_new(void);
void batch_nodes_free(struct nodes *r);
/* Now: boot clock, ms; asks when the interval is over. */
void batch_capacity_look(struct batch *b, int64_t now);
