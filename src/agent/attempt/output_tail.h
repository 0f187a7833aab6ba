/* output_tail: the last bytes of what an attempt prints, for its result, and the disk that streams without a
 * name may use.
 *
 * Nobody has named a destination for such a stream, so its file in the sandbox must not grow for ever: while
 * the program runs everything before the last KEPT_BYTES becomes a hole, and when the steps are over the last
 * OUTPUT_TAIL_MAX bytes go into the result and the file is removed. The tail of a stream with a name goes
 * into the result, too; its file is delivered elsewhere.
 */
#pragma once
#include "agent/model/attempt.h"

#define OUTPUT_TAIL_MAX (64u << 10)

void output_tails_open(struct agent *a);
void output_tails_close(struct agent *a); /* called after all attempts are freed */
void output_tails_tick(struct agent *a);  /* called every second: trims the files */

/* Copies the last bytes of the streams into the result and removes the files of unnamed ones. Called when the
 * steps are over, before anything is delivered or removed; a second call changes nothing. followed: somebody
 * has the files open. */
void output_tail_keep(struct attempt *at, bool followed);
/* For an attempt that was delegated to another server and whose result is here. Returns true if the end of
 * its unnamed streams is requested from there: news->printed will be called. Returns false if there is
 * nothing to wait for. */
bool output_tail_wait(struct attempt *at);
/* Restores the end of a stream from the journal into the result. */
void output_tail_restore(struct attempt *at, int stream, const void *bytes, size_t count, uint64_t size);
void output_tail_drop(struct attempt *at); /* frees the tails in the result */
/* Bytes of disk that the files of unnamed streams use, which do not count as the job's. */
uint64_t output_tail_disk_bytes(const struct attempt *at);
