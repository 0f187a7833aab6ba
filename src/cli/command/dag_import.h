/* dag_import: descriptions of workflows by others as DAG files. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/terminal/view.h"

/* Appends the DAG of a workflow instance of WfCommons, which was read from `file`; run times are divided by
 * hurry, which is above 0. 0; or -EINVAL with err, and what was appended is of no use. */
int dag_import_wfcommons(const char *file, struct str text, double hurry, struct buf *out, struct err *err);
