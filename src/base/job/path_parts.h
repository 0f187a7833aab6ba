/* path_parts: parts of a path, selected by letters as in HTCondor's $F macros.
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
        PATH_LAST_DIRS = 8, /* the last path_parts.dirs directories */
};
struct path_parts {
        unsigned parts, dirs; /* of path_part; 0: the whole path */
        bool full, bare, quote, argument_quote;
        char separator; /* between directories; 0: as in the path, which is / */
};

/* Adds the parts that the letters select. False: a letter is unknown. */
bool path_parts_read(struct str letters, struct path_parts *p);
/* Returns the selected parts of the path, a piece of it. `full`, quotes and other separators are left to the
 * caller. */
struct str path_parts_select(const struct path_parts *p, struct str path);
