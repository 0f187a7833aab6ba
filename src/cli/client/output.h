/* output: follows the output of one job through its server's GET /v1/jobs/ID/output.
 *
 *      struct output o = {.job = "7.0", .last = 65536};
 *      while (!(o.ended && o.over) && output_next(cli, &o, 30000, &err) == 0)
 *              … o.bytes[0] is the new part of stdout, o.bytes[1] that of stderr …
 *      output_deinit(&o);
 */
#pragma once
#include "cli/client/api.h"

#define OUTPUT_LAST_MAX 65536 /* bytes of each stream in one answer, and bytes kept of a job that is over */

/* Returns the last lines of a text; a last line without a newline counts. lines 0: none. */
struct str output_last_lines(struct str text, int64_t lines);
/* Appends the last lines of one or both streams ("stdout", "stderr"; NULL: both) of a job, each line after
 * the indent, with control characters made safe for a terminal. An empty stream is left out; with both, a
 * line names each stream. Returns false if nothing was appended, for whatever reason. */
bool output_show_last(struct cli *cli, const char *job, const char *only, int64_t lines, const char *indent,
                      struct buf *out);

enum output_stream { OUTPUT_STDOUT, OUTPUT_STDERR };

struct output {           /* {0} but for what the caller sets */
        const char *job;  /* "7.0" */
        const char *only; /* "stdout" or "stderr"; NULL: both */
        /* number of a command beside the job's program, with `attempt` set; 0: the job's own output */
        int64_t exec;
        int64_t last; /* bytes before the end at which the first answer begins; 0: at the first byte */
        /* set by output_next */
        bool asked;
        int64_t attempt; /* attempt that prints the bytes; 0: none yet */
        bool again;      /* the attempt differs from that of the previous answer */
        int64_t next[2];
        struct buf bytes[2]; /* new in this answer */
        int64_t gap[2];      /* bytes before `bytes` that were not kept */
        bool over;           /* the attempt prints nothing more */
        bool ended;          /* the job prints nothing more */
        char state[16];
        int exit_code, exit_signal; /* valid if ended or, for a command, over; -1: none */
        struct buf error;           /* why a command that is over was not started */
};
void output_deinit(struct output *o);
#define OUTPUT_CLEANUP __attribute__((cleanup(output_deinit)))

/* Asks for new output, and waits up to timeout_ms for it: 0 to a minute. Returns 0; or an api_error with
 * err, and *o keeps the content of earlier answers, so that the call may be repeated. *ret_exit (may be
 * NULL) is the exit code for the error. */
int output_next(struct cli *cli, struct output *o, int timeout_ms, struct err *err, int *ret_exit);
