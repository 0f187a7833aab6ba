/* world: access to the real files, globs, environment and commands, for the readers of job descriptions.
 * Everything is done with the rights of the user who submits. */
#pragma once
#include "jdl/form/form.h"

struct world {
        struct form_world form; /* passed to the readers; borrows from this struct */
        char cwd[4096];
};
/* Prepares the world. Returns 0; or -errno with err: the current directory has no name. The struct must not
 * be moved afterwards. */
int world_init(struct world *w, struct err *err);
/* Appends all of standard input to *ret. Returns 0; -EFBIG: more than max bytes; or another -errno. */
int world_read_stdin(size_t max, struct buf *ret, struct err *err);
