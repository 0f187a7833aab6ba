/* script: makes a request whose job is a shell script written by Drover; shared by the readers of tools.
 *
 * The description is text of the submit language, read by its reader, so that every default is the same; the
 * script becomes the arguments of /bin/sh -c.
 */
#pragma once
#include "jdl/condor/condor.h"

#define SCRIPT_MAX 120000u /* maximum bytes; the system takes 128 KiB for one argument */

void script_quote(struct buf *out, struct str s); /* appends s quoted as one word of a shell */
/* appends s as a value of the submit language in which no macro is expanded */
void script_value(struct buf *out, struct str s);
/* Appends a line with the job's input files; nothing if there are none. */
void script_inputs(struct buf *out, const char *const *paths, size_t count);
/* Appends a path that is relative to the folder of `file` as a path from the current directory, without "/."
 * at its end; a URL is unchanged. */
void script_absolute(const struct form_world *w, struct str file, struct str path, struct buf *out);
bool script_is_json_number(struct str s);

/* Fills *ret from the lines in `submit`, whose last one may be "queue COUNT", with the lines of `o`.
 * requirements: a clause that is added to the job's (NULL: none). Returns 0; -E2BIG; or the error of
 * condor_parse, with err. */
int script_job(const struct form_world *w, const char *file, struct str submit, struct str script,
               const char *requirements, const struct condor_options *o, struct form *ret, struct err *err);
