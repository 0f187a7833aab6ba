/* submit: gives fresh tasks to the system, those that are alike as one array. */
#pragma once
#include "base/buf.h"

struct batch;
struct submission;
struct submitter;

void batch_submitter_open(struct batch *b);
void batch_submitter_free(struct submitter *s);
bool batch_submit_waits(const struct batch *b); /* there are fresh tasks, or submissions to send */
void batch_submit_later(struct batch *b);       /* submits in the loop's next turn */
void batch_send_again(struct batch *b, struct submission *s);
/* Appends the last `count` base-36 digits of n, the lowest first, for systems with short names. */
void batch_digits(struct buf *out, uint64_t n, unsigned count);
