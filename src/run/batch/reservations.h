/* reservations: advance reservations of the queue's room, passed on to the batch system.
 *
 * The server's list (batch_reserve) is what the system should have. The system is asked for its own list
 * after each change, and every minute while there are any; what is missing there is made, and what is there
 * under one of this queue's names and is not in the list is removed. A name contains the number and the
 * start, so that another occurrence of a reservation is another one there. What the system refuses is tried
 * again after a minute: the server keeps its own jobs away meanwhile, as without any of this.
 */
#pragma once
#include "run/batch/batch.h"

struct batch;
struct reservations;

struct reservations *batch_reservations_new(void);
void batch_reservations_free(struct reservations *r); /* NULL is fine */
void batch_reservations_tick(struct batch *b);
/* Returns the system's name of a reservation that it has; NULL: it has none, or the word is no number. */
const char *batch_reservation_name(const struct batch *b, const char *id);
