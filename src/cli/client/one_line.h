/* one_line: the submit file of a command that stands on the command line: `drover submit --cpus 2 -- ./x 1
 * 2`.
 *
 * The jobs run in the current folder at places that see it, elsewhere in a folder of their own, to which
 * files that are named by arguments without a folder are sent; with --send always in a folder of their own.
 * What they print goes into files of the current folder, since nobody has said where. With --array and --each
 * the placeholders of GNU parallel stand for what differs: {} {.} {/} {//} {/.} {#}.
 */
#pragma once
#include "base/buf.h"
#include "cli/terminal/options.h"

/* An option that describes such a command, and is given; NULL: there is none. */
const char *one_line_option(const struct options *o);
/* Where streams go that no option has a file for; NULL: as one_line_write says for all. */
struct one_line_streams {
        const char *input;  /* path, or NULL: none */
        const char *output; /* path up to the job's number; .out and .err are put behind that */
};
/* Appends the submit file of the words. streams NULL: outputs go into files of the current folder that are
 * named after the command, the request and the job. 0, or -EINVAL with err: a word or an option that cannot
 * be meant, or a program that is not there. */
int one_line_write(const struct options *o, const struct one_line_streams *streams, struct buf *out,
                   struct err *err);
