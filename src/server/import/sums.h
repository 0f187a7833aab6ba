/* sums: translates the configuration of SUMS's scheduler (schedulerConfig.xml) into the server's settings.
 *
 * The file is XML of Java's beans: objects with a class and an id, calls of their methods (or the setters of
 * their properties), and references between them. Queues, dispatchers, policies, job initializers and
 * applications become presets of droverd.yaml; whatever has no equivalent becomes a note with its line, and
 * is never dropped silently.
 *
 * Source: the configuration guide of SUMS 1.8.6 (star.bnl.gov, public/comp/Grid/scheduler/dev).
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define SUMS_IMPORT_MAX (4u << 20) /* bytes of a file */

/* Appends the settings to out, and the notes to notes, each a line "FILE:LINE: TEXT". Returns 0; -EINVAL
 * with err "FILE:LINE: ...": the file is not such a configuration; -ENOSYS: no libxml2 on this machine. */
int sums_import(const char *file, struct str text, struct buf *out, struct buf *notes, struct err *err);
/* Runs the command droverd import-sums FILE; argv begins with FILE. Returns the exit code. */
int sums_import_main(int argc, char **argv);
