/* shipped: which of the files that came along with a request one of its jobs gets.
 *
 * A request's files are those of all its jobs; a job gets the ones that it names: its program, its standard
 * input, and what its list of inputs names, a folder with all that is in it. An entry "folder/" stands for
 * files whose names can't be told from here: then the job gets all. (See also the submitter's side,
 * cli/client/ship.c.) */
#pragma once
#include "agent/agent.h"

struct shipped {
        struct buf names; /* each ended by a line feed */
        bool all;
};
void shipped_read(const struct attempt *at, struct shipped *ret);
void shipped_deinit(struct shipped *s);
bool shipped_wants(const struct shipped *s, const char *name);
/* Did a file or folder of this name come along? */
bool shipped_has(const Drover__Template *m, struct str name);
/* A name in the sandbox: relative, without empty, "." and ".." parts. */
bool shipped_name_valid(const char *name);
