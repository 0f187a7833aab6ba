/* program: where our own programs are, and those that come with them. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* The absolute path of the running program, "" if it cannot be told. Read at the first call and kept: a
 * process that gives root's rights away may not read it afterwards, and calls this before. */
const char *program_self(void);
/* The path of droverd, drover-agent, …: beside this program, in the neighbouring folder of a build tree, in
 * the folder for such programs, in $PATH. 0, or -ENOENT with err. */
int program_find(const char *name, struct buf *ret, struct err *err);
/* The path of a program that comes with Drover for settings that name one: of dist/KIND, installed as
 * PREFIX/share/drover/KIND. A path (with a slash) stays as it is, whether something is there or not. 0, or
 * -ENOENT with err: there is none of that name. */
int program_shipped(const char *kind, const char *name, struct buf *ret, struct err *err);
