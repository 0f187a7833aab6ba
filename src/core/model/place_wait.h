/* place_wait: members that were passed over and wait for a better place (match/better.h). */
#pragma once
#include "core/model/names.h"
#include <stdint.h>

/* A member that was passed over. It keeps its place in the line of the queue that it waits for. */
struct place_wait {
        int64_t since_ms;
        struct queue *queue; /* NULL: it waited, and does not at the moment */
        uint32_t before;     /* so many were promised a place there when it was */
};
struct place_wait *place_wait_of(const struct request *r,
                                 uint32_t member);                  /* NULL: it was never passed over */
void place_wait_for(struct place_wait *w, struct queue *q);         /* NULL: it waits for none */
void place_wait_left(struct request *r, const struct set *members); /* they are not idle any more */
void place_wait_forget(struct request *r);                          /* the request ends */
