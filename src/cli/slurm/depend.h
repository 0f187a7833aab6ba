/* depend: translates --dependency to depends_on of submit files. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/terminal/cli.h"

/* Appends the value of depends_on; nothing if all dependencies are met already. `name` and the owner are the
 * job's, for "singleton". Returns 0, or -errno with err. */
int depend_write(struct cli *cli, struct str text, struct str name, struct buf *out, struct err *err);
