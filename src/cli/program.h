/* program: finding Drover's other programs. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* The path of droverd, drover-agent, …: beside this program, in the neighbouring folder of a build tree, in
 * the folder for such programs, in $PATH. 0, or -ENOENT with err. */
int program_find(const char *name, struct buf *ret, struct err *err);
