/* local: checks of the files that a description names, on the machine of the submit.
 *
 * Whether these files also exist where the jobs will run is not known at the submit. A file that is missing
 * here is only a warning, since most such names are misspelt.
 */
#pragma once
#include "base/buf.h"
#include "jdl/form/form.h"

/* Gives the path of a file on this machine, relative to the folder `iwd`. Returns false if the file is
 * elsewhere, or differs from member to member. */
bool local_path(struct str iwd, struct str name, struct buf *out);
/* Returns whether the program of these jobs is a file of this machine, and not of a container image or of
 * the place. */
bool local_program(const struct form_part *p);
/* Adds a warning for each part's folder, program, standard input and first input file that does not exist
 * here, and for an output that has one name for all jobs. The warning names the part's line or, with
 * no_lines (nobody wrote the text), line 0. */
void local_warn(struct form *f, bool no_lines);
/* Adds a warning for the first argument of each part that names a file here but will name none where the
 * jobs run. `remote`: the jobs may run at places that do not see this machine's files. */
void local_warn_arguments(struct form *f, bool no_lines, bool remote);
