/* local: the files that a description names, as they are seen from here.
 *
 * Whether they are here too where the jobs will run nobody knows at the submit; what is missing here is a
 * warning, for it is a misspelt name most of the time.
 */
#pragma once
#include "base/buf.h"
#include "jdl/form.h"

/* The path of a file on this machine, relative to the folder `iwd`; false: it is somewhere else, or differs
 * from member to member. */
bool local_path(struct str iwd, struct str name, struct buf *out);
/* Is the program of these jobs a file of this machine, and not of an image or of the place? */
bool local_program(const struct form_part *p);
/* Warns of each part's folder, program, standard input and first input file that are not here, and of an
 * output of one name for all jobs, at the part's line or, with no_lines (it is of a text that nobody wrote),
 * at line 0. */
void local_warn(struct form *f, bool no_lines);
/* Warns in the same way of the first argument of each part that names a file here, and will name none where
 * the jobs run. `remote`: places that do not see this machine's files may have them. */
void local_warn_arguments(struct form *f, bool no_lines, bool remote);
