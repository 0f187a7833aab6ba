/* program: the paths of our own programs, and of the helpers that are installed with them. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* Returns the absolute path of the running program, "" if unknown. The path is read at the first call and
 * kept: a process that drops root's privileges cannot read it afterwards, and calls this before. */
const char *program_self(void);
/* Finds droverd, drover-agent, …: beside this program, in the neighbouring folder of a build tree, in
 * the folder for such programs, in $PATH. 0, or -ENOENT with err. */
int program_find(const char *name, struct buf *ret, struct err *err);
/* Finds a helper program that a setting names: one of dist/KIND, installed as
 * PREFIX/share/drover/KIND. A path (with a slash) is returned as it is, whether the file exists or not. 0, or
 * -ENOENT with err: no helper has that name. */
int program_shipped(const char *kind, const char *name, struct buf *ret, struct err *err);
