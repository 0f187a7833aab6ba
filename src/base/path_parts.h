/* path_parts: a part of a path, asked for by letters as in HTCondor's $F macros.
 *
 *      /tmp/run.d/simulate.tar.gz
 *      p = /tmp/run.d/   d = run.d/   dd = tmp/run.d/   n = simulate.tar   x = .gz
 *
 * b leaves out the / at the end of directories and the point of an extension, f asks for an absolute path, q
 * for quotes (a: single ones), u and w for / or \ between directories. Letters may be of either case.
 * (HTCondor manual, "Function Macros", $F.)
 */
#pragma once
#include "base/str.h"

enum path_part {
        PATH_EXTENSION = 1,
        PATH_NAME = 2,
        PATH_PATH = 4,
        PATH_LAST_DIRS = 8, /* so many as path_parts.dirs says */
};
struct path_parts {
        unsigned parts, dirs; /* of path_part; 0: the whole path */
        bool full, bare, quote, argument_quote;
        char separator; /* what stands between directories; 0: as in the path, and that is / */
};

/* Adds what the letters ask for. False: another letter is among them. */
bool path_parts_read(struct str letters, struct path_parts *p);
/* These parts of the path, a piece of it; full, the quotes and writing other separators are for the caller.
 */
struct str path_parts_select(const struct path_parts *p, struct str path);
