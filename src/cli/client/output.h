/* output: what one job prints, followed by its server's GET /v1/jobs/ID/output.
 *
 *      struct output o = {.job = "7.0", .last = 65536};
 *      while (!(o.ended && o.over) && output_next(cli, &o, 30000, &err) == 0)
 *              … o.bytes[0] is what is new of stdout, o.bytes[1] of stderr …
 *      output_deinit(&o);
 */
#pragma once
#include "cli/client/api.h"

#define OUTPUT_LAST_MAX                                                                                      \
        65536 /* bytes of each stream in one answer, and that are kept of a job that is over */

/* The last lines of a text; one without its end is a line, too. lines 0: none. */
struct str output_last_lines(struct str text, int64_t lines);
/* Appends the last lines of one or both streams ("stdout", "stderr"; NULL: both) of a job, each line behind
 * the indent, fit for a terminal. Of a stream without any there is nothing; with both, a line says which is
 * which. False: nothing was appended; why is of no interest. */
bool output_show_last(struct cli *cli, const char *job, const char *only, int64_t lines, const char *indent,
                      struct buf *out);

enum output_stream { OUTPUT_STDOUT, OUTPUT_STDERR };

struct output {           /* {0} but for what the caller sets */
        const char *job;  /* "7.0" */
        const char *only; /* "stdout" or "stderr"; NULL: both */
        int64_t exec;     /* of this command beside the job's program, whose attempt is set; 0: of the job */
        int64_t last;     /* the first answer begins so many bytes before the end; 0: with the first byte */
        /* the rest is output_next's */
        bool asked;
        int64_t attempt; /* that prints it; 0: there was none yet */
        bool again;      /* it is another one than in the answer before */
        int64_t next[2];
        struct buf bytes[2]; /* new in this answer */
        int64_t gap[2];      /* bytes in front of those that nobody has kept */
        bool over;           /* the attempt prints nothing more */
        bool ended;          /* nor does the job */
        char state[16];
        int exit_code, exit_signal; /* ended, or of a command over; -1: none */
        struct buf error;           /* of a command that is over: why it was not started */
};
void output_deinit(struct output *o);
#define OUTPUT_CLEANUP __attribute__((cleanup(output_deinit)))

/* Asks for what is new, and waits so long for it: 0 not at all, at most a minute. 0; or an api_error with
 * err, and what *o has of earlier answers stays, so that it may be called again. *ret_exit (may be NULL) is
 * the exit code for the error. */
int output_next(struct cli *cli, struct output *o, int timeout_ms, struct err *err, int *ret_exit);
