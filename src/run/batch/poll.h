/* poll: the tick of a batch queue, which looks at files and asks the system about all tasks at once. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct poll;

struct query { /* the last status query; written by poll.c only */
        uint64_t generation;
        int64_t asked_ms, asked_before_ms; /* boot clock; before: of the one before */
        int64_t past_away_ms; /* boot clock, when what is over could not be asked about; 0: it always could */
};

struct poll *batch_poll_new(void);
void batch_poll_free(struct poll *p);
void batch_poll(void *batch); /* the tick */
