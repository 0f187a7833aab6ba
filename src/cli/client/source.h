/* source: submits the requests that a program offers, and reports their progress and results to the program.
 *
 * The program fetches work from another system: a folder, a queue, another Drover. It reads and prints one
 * JSON object per line (drover-source(7)). Nothing is stored on disk here: the uuid of a request is derived
 * from the names of the source and of the request, so that a request that is offered again, after either side
 * was killed, is the same request for the server. After each start the program offers all requests without a
 * result again.
 */
#pragma once
#include "cli/terminal/cli.h"

#define SOURCE_TEXT_MAX   65536      /* maximum bytes of a request's text; the server's limit */
#define SOURCE_OPEN_MAX   500        /* maximum number of open requests */
#define SOURCE_NAME_MAX   64         /* maximum bytes of a source's name */
#define SOURCE_ID_MAX     128        /* maximum bytes of a request's id */
#define SOURCE_LINE_MAX   (1u << 20) /* maximum bytes of a line of the program's */
#define SOURCE_UNREAD_MAX (4u << 20) /* maximum bytes that the program has not read yet */

struct source_options {
        const char *name;  /* letters, digits and -_. */
        size_t most;       /* open requests, up to SOURCE_OPEN_MAX */
        bool files;        /* the program may name submit files, which are read here */
        char *const *argv; /* program and its arguments; argv[0] is a path, or a name in PATH */
};

/* Runs the program until it ends, or until SIGTERM or SIGINT. Prints errors. Returns an exit code: CLI_OK if
 * the program has ended with status 0, or for a signal. */
int source_run(struct cli *cli, const struct source_options *o);
