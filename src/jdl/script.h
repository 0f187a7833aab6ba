/* script: a request whose job is a shell script of ours: what the readers of tools share.
 *
 * The description is text of the submit language, read by its reader, so that every default is the same; the
 * script becomes the arguments of /bin/sh -c.
 */
#pragma once
#include "jdl/condor/condor.h"

#define SCRIPT_MAX 120000u /* bytes: the system takes 128 KiB for one argument */

void script_quote(struct buf *out, struct str s); /* as one word of a shell */
void script_value(struct buf *out, struct str s); /* as it stands in the submit language: no macro in it */
/* A line with what the job gets; nothing for none. */
void script_inputs(struct buf *out, const char *const *paths, size_t count);
/* A path that begins at the folder of `file`, from the current directory, without "/." at its end; a URL
 * stays. */
void script_absolute(const struct form_world *w, struct str file, struct str path, struct buf *out);
bool script_is_json_number(struct str s);

/* Fills *ret of the lines in `submit`, whose last one may be "queue COUNT", with the lines of `o`.
 * requirements: a clause that is added to the job's (NULL: none). 0; -E2BIG; or what condor_parse returned,
 * with err. */
int script_job(const struct form_world *w, const char *file, struct str submit, struct str script,
               const char *requirements, const struct condor_options *o, struct form *ret, struct err *err);
