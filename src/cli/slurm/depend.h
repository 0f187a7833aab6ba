/* depend: what --dependency says, as depends_on of submit files.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/terminal/cli.h"

/* Appends the value of depends_on; nothing when all of it is fulfilled. `name` and `owner` are the job's, for
 * "singleton". 0, or -errno with err. */
int depend_write(struct cli *cli, struct str text, struct str name, struct buf *out, struct err *err);
