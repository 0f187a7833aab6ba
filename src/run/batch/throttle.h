/* throttle: a limit of the system's that was met, and how much is tried under it. */
#pragma once
#include "base/buf.h"

struct batch;
struct submission;
struct submit_user;
struct throttle;

struct throttle *batch_throttle_find(const struct batch *b, const struct submit_user *p,
                                     const char *head); /* NULL: none was met */
bool batch_throttle_waits(const struct throttle *j);    /* nothing is sent now. NULL: no */
const char *batch_throttle_words(
        const struct throttle *j); /* the system's; NULL: there is none any more. NULL is fine */
unsigned batch_throttle_room(const struct throttle *j,
                             unsigned array_max);       /* of the next submission; 0: none now */
unsigned batch_throttle_size(const struct throttle *j); /* the system may take arrays of so many. NULL: any */
void batch_throttle_open(struct submission *s, struct throttle *j); /* it will be sent. NULL is fine */
void batch_throttle_close(struct submission *s); /* it will not, or its answer is not known */
/* The system has not taken it. It is open again. */
void batch_throttle_full(struct batch *b, struct submission *s, struct str errors);
void batch_throttle_taken(struct batch *b, struct submission *s);
bool batch_throttled(const struct batch *b); /* something waits */
void batch_throttles_free(struct batch *b);
