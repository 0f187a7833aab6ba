/* quote: when the system would begin with a task, asked of the system (batch_system.when). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct batch;
struct quotes;

struct quotes *batch_quotes_new(void);
void batch_quotes_free(struct batch *b); /* those that are open have no answer */
