/* chirp: calls that the program of an attempt makes to its job's server while it runs: on attributes of the
 * job, lines for its log, files beneath the folder of the submit, and programs on other nodes of a parallel
 * job.
 *
 * A job that was submitted with want_io_proxy, or in universe = parallel, has a socket in its sandbox
 * (SANDBOX_CHIRP), whose path is in DROVER_CHIRP. A peer sends a line of JSON for each call and gets a line
 * in return, one call at a time; drover-chirp(1) has the lines. The server decides what is allowed, and an
 * agent that can access the folder does the file operations.
 *
 * The peers belong to the job and are not trusted: their number, the length of a line, the rate of durable
 * changes, and queued calls are bounded, and no peer delays anything but its own job's calls.
 */
#pragma once
#include "agent/model/attempt.h"
#include "base/str.h"

void chirps_open(struct agent *a);
void chirps_close(struct agent *a); /* called after all attempts are freed */
/* Makes the attempt's socket, if it needs one and has none. An error is logged; the job runs without a
 * socket then. */
void chirp_open(struct attempt *at);
/* Called when the program has ended: sends deferred changes and closes the peers. at->chirp may be NULL. */
void chirp_close(struct attempt *at);
void chirp_tick(struct agent *a);         /* called every second */
void chirp_session_lost(struct agent *a); /* calls sent in the lost session are answered with an error */

/* Writes to a file beneath the folder of the submit, for the attempt itself; the write at offset 0 empties
 * the file. live_output_answer is called with the result and the number that is returned. */
uint64_t chirp_write(const struct attempt *at, const char *name, struct str data, uint64_t offset);

struct chirp_answer {
        int error; /* errno; 0: success */
        const char *text;
        struct str data;
        uint64_t size; /* size of the file */
        uint32_t mode;
        int64_t changed;
        uint64_t command;        /* to `launch`: number of the program */
        struct str stderr_bytes; /* to `launched`, with the program's end */
        bool over, signaled;
        int32_t exit_code;
};
void chirp_answer(struct agent *a, uint64_t serial,
                  const struct chirp_answer *said); /* called with the server's answer */
