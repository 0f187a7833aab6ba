/* dag_import: converts other systems' workflow descriptions to DAG files. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/terminal/view.h"

/* Appends the DAG of a WfCommons workflow instance, which was read from `file`; run times are divided by
 * hurry, which is above 0. Returns 0; or -EINVAL with err, and the appended text is incomplete. */
int dag_import_wfcommons(const char *file, struct str text, double hurry, struct buf *out, struct err *err);
