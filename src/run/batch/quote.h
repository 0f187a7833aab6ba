/* quote: asks the system when it would begin a task (batch_system.when). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct batch;
struct quotes;

struct quotes *batch_quotes_new(void);
void batch_quotes_free(struct batch *b); /* open quotes end without an answer */
