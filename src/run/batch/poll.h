/* poll: a batch queue's timer, which looks at tasks' files and asks the system about all tasks at once. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct poll;

struct query { /* the last status query; written by poll.c only */
        uint64_t generation;
        int64_t asked_ms, asked_before_ms; /* boot clock; when it was made, and when the one before was */
        int64_t past_away_ms; /* boot clock; last time at which accounting could not be asked about ended
                                 tasks; 0: never */
};

struct poll *batch_poll_new(void);
void batch_poll_free(struct poll *p);
void batch_poll(void *batch); /* callback of the timer; the argument is the struct batch */
