/* streams: answers requests for the output of attempts while they run, and keeps the end of it for the
 * result.
 *
 * The streams of an attempt are files in its sandbox. A request names how much of each stream the requester
 * has, and is answered when there is more, when the attempt's steps are over, or when its time is up. During
 * requests the files are held open, so that the rest can be read after delivery.
 *
 * The files belong to the job and are not trusted: a file put in their place is read only if it is a regular
 * file of the job's user.
 */
#pragma once
#include "agent/model/attempt.h"
#include "wire/drover.pb-c.h"

void streams_open(struct agent *a);
void streams_close(struct agent *a); /* called after all attempts are freed */

void streams_get(struct agent *a, const Drover__StreamsGet *m);
/* Runs a command beside an attempt's program; its output is requested by streams_get. */
void streams_exec(struct agent *a, const Drover__Exec *m);
void streams_input(struct agent *a, const Drover__ExecInput *m); /* input for such a command */
bool streams_event(struct agent *a,
                   const struct run_event *e); /* returns true if the task is such a command */
void streams_session_lost(struct agent *a);    /* drops the requests of the lost session */
/* Called when the attempt's steps are over and its files are about to be delivered or removed: copies the
 * last bytes of its streams into the result. A second call does nothing. */
void streams_end(struct attempt *at);
/* For an attempt that was delegated to another server and whose result is here. Returns true if the end of
 * its unnamed streams is requested from there: news->printed will be called. Returns false if there is
 * nothing to wait for. */
bool streams_wait(struct attempt *at);
/* Restores the end of a stream from the journal into the result. */
void streams_restore_tail(struct attempt *at, int stream, const void *bytes, size_t count, uint64_t size);
void streams_drop_tails(struct attempt *at);
/* Opens the file ".drover_out.INDEX" of an attempt for reading. Returns a descriptor, or -1 if the file is
 * missing or not the job's. */
int streams_open_file(const struct attempt *at, int index);
/* Called every second: trims the files of unnamed streams to their end, a longer one while somebody follows
 * them. */
void streams_tick(struct agent *a);
uint64_t streams_kept_bytes(
        const struct attempt *at); /* bytes of disk that these files use, which do not count as the job's */
void streams_forget(struct attempt *at); /* called when the attempt is freed */
