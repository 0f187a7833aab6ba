/* live_output: copies a program's output to the stream files at the submitter while it runs (stream_output
 * and stream_error).
 *
 * Best effort, some seconds late, at most a megabyte per second: when the program has ended its streams are
 * delivered whole, so that nothing is missing then.
 */
#pragma once
#include "agent/model/attempt.h"

void live_output_begin(
        struct attempt *at); /* called when a step begins, or goes on after the agent's restart */
void live_output_end(
        struct attempt *at); /* called before the streams are delivered; does nothing if not begun */
/* Called when the program has ended. Returns true if a write that empties a file is still under way, which
 * would destroy a delivered file; news->printed is called when it is done, or after a minute. */
bool live_output_wait(struct attempt *at);
void live_output_tick(struct agent *a);                             /* called every second */
void live_output_answer(struct agent *a, uint64_t serial, bool ok); /* result of a chirp_write */
