/* throttle: slows submissions down while the system refuses more because of a limit on jobs. */
#pragma once
#include "base/buf.h"

struct batch;
struct submission;
struct submit_user;
struct throttle;

struct throttle *batch_throttle_find(const struct batch *b, const struct submit_user *p,
                                     const char *head); /* NULL: none applies */
bool batch_throttle_waits(const struct throttle *j);    /* true: nothing may be sent now; j may be NULL */
/* The system's message; NULL: the limit no longer applies; j may be NULL. */
const char *batch_throttle_words(const struct throttle *j);
/* Most members of the next submission; 0: nothing may be sent now. */
unsigned batch_throttle_room(const struct throttle *j, unsigned array_max);
/* Most members of an array that the system may accept; UINT32_MAX: any. */
unsigned batch_throttle_size(const struct throttle *j);
/* The submission is going to be sent under j, which may be NULL. */
void batch_throttle_open(struct submission *s, struct throttle *j);
void batch_throttle_close(struct submission *s); /* the submission is not sent, or its answer is not known */
/* The system refused the submission because of a limit: it stays open in the limit's throttle and is sent
 * later. */
void batch_throttle_full(struct batch *b, struct submission *s, struct str errors);
void batch_throttle_taken(struct batch *b, struct submission *s);
bool batch_throttled(const struct batch *b); /* some throttle forbids sending now */
void batch_throttles_free(struct batch *b);
