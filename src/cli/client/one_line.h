/* one_line: makes a submit file from a command on the command line: `drover submit --cpus 2 -- ./x 1 2`.
 *
 * The jobs run in the current folder at places that see it. Elsewhere they run in a folder of their own, to
 * which files named by arguments without a folder are sent; with --send they always do so. Output goes into
 * files of the current folder, unless an option says otherwise. With --array and --each the placeholders of
 * GNU parallel stand for the values that differ: {} {.} {/} {//} {/.} {#}.
 */
#pragma once
#include "base/buf.h"
#include "cli/terminal/options.h"

/* Returns an option that was given and describes such a command; NULL: there is none. */
const char *one_line_option(const struct options *o);
/* Destinations of the streams for which no option names a file; NULL: the defaults of one_line_write. */
struct one_line_streams {
        const char *input;  /* path, or NULL: none */
        const char *output; /* path up to the job's number; .out and .err are appended */
};
/* Returns whether a word begins with the name of a program in the PATH: "wc", or "wc -l x". */
bool one_line_is_command(const char *word);
/* Appends the submit file for the words. streams NULL: outputs go into files of the current folder that are
 * named after the command, the request and the job. Returns 0, or -EINVAL with err: a word or an option
 * cannot be meant, or the program does not exist. */
int one_line_write(const struct options *o, const struct one_line_streams *streams, struct buf *out,
                   struct err *err);
