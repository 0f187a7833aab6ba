/* submit: fresh tasks that are alike are given to the system as one array. */
#pragma once
#include "base/buf.h"

struct batch;
struct submission;
struct submitter;

void batch_submitter_open(struct batch *b);
void batch_submitter_free(struct submitter *s);
bool batch_submit_waits(const struct batch *b); /* there is something to submit */
void batch_submit_later(struct batch *b);       /* there are fresh tasks, or submissions to send */
void batch_send_again(struct batch *b, struct submission *s);
/* Appends `count` digits, the lowest first, for names that may not be long. */
void batch_digits(struct buf *out, uint64_t n, unsigned count);
