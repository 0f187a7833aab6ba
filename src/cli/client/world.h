/* world: what the readers of job descriptions may ask of the outside, for real: files, globs, environment,
 * commands. Everything is done with the rights of the user who submits. */
#pragma once
#include "jdl/form.h"

struct world {
        struct form_world form; /* what is given to the readers; borrows from this struct */
        char cwd[4096];
};
/* 0, or -errno with err: the current directory has no name. The struct must not be moved afterwards. */
int world_init(struct world *w, struct err *err);
/* All of standard input, added to *ret. 0; -EFBIG: it is over max bytes; -errno. */
int world_read_stdin(size_t max, struct buf *ret, struct err *err);
