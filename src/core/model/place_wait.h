/* place_wait: members that were passed over and wait for a better place (match/delay_scheduling.h). */
#pragma once
#include "core/model/names.h"
#include <stdint.h>

/* The wait of a member that was passed over. The member keeps its position in the line of the queue that it
 * waits for. */
struct place_wait {
        int64_t since_ms;
        struct queue *queue; /* NULL: the member waits for no queue at present */
        uint32_t before;     /* members that had been promised a place in the queue before this one */
};
/* Returns the wait of a member; NULL: the member was never passed over. */
struct place_wait *place_wait_of(const struct request *r, uint32_t member);
void place_wait_for(struct place_wait *w, struct queue *q); /* q NULL: ends the wait */
/* Ends the waits of members that are not idle any more. */
void place_wait_left(struct request *r, const struct set *members);
void place_wait_forget(struct request *r); /* ends all waits of the request */
