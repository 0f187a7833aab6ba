/* capacity: how many nodes the system has and how many are free, asked now and then. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct batch;
struct nodes;

struct nodes *batch_nodes_new(void);
void batch_nodes_free(struct nodes *r);
void batch_capacity_look(struct batch *b, int64_t now); /* asks, if it is time */
