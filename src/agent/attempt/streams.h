/* streams: what attempts print, for whoever asks the server while they run, and the end of it afterwards.
 *
 * The streams of an attempt are files in its sandbox. A question names how much of each the asker has, and is
 * answered when there is more, when the attempt's steps are over, or when its time is up. While somebody asks
 * the files are held open, so that the rest can still be read when they have been delivered.
 *
 * The files are the job's: what has been put in their place is not read, unless it is a regular file of the
 * job's user.
 */
#pragma once
#include "agent/model/attempt.h"
#include "wire/drover.pb-c.h"

void streams_open(struct agent *a);
void streams_close(struct agent *a); /* after all attempts are freed */

void streams_get(struct agent *a, const Drover__StreamsGet *m);
/* Runs a command beside an attempt's program; what it prints is asked for by streams_get. */
void streams_exec(struct agent *a, const Drover__Exec *m);
void streams_input(struct agent *a, const Drover__ExecInput *m); /* for such a command */
bool streams_event(struct agent *a, const struct run_event *e);  /* true: the task was such a command */
void streams_session_lost(struct agent *a); /* what was asked in it is not answered any more */
/* The attempt's steps are over, and its files are about to be delivered or removed: the last bytes of its
 * streams go into its result. Called twice, the second call does nothing. */
void streams_end(struct attempt *at);
/* For an attempt that was handed on to another server, and whose result is here. True: what the job printed
 * there to streams without a name is asked for, and news->printed will be called. False: nothing is to be
 * waited for. */
bool streams_wait(struct attempt *at);
/* A tail that the journal has kept goes into its result. */
void streams_restore_tail(struct attempt *at, int stream, const void *bytes, size_t count, uint64_t size);
void streams_drop_tails(struct attempt *at);
/* Every second: of streams that the job has not named only the end stays on the disk, and more of it while
 * somebody follows them. */
void streams_tick(struct agent *a);
uint64_t streams_kept_bytes(const struct attempt *at); /* that they take on the disk: none of the job's */
void streams_forget(struct attempt *at);               /* it is freed */
