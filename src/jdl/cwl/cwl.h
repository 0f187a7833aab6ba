/* cwl: translates a CWL tool's description and a job order to a request whose job runs cwltool.
 *
 * Files named by the job order travel with the job under their own names, and the order is rewritten
 * accordingly; files to which the description refers (run:, $import, default files) are sent too. A Workflow
 * runs as one job, with a warning. Cores and memory of a ResourceRequirement become the job's. Source: the
 * Common Workflow Language, v1.0 to v1.2, "CommandLineTool", "File", "Directory", "ResourceRequirement";
 * cwltool(1).
 *
 * Pure: files come through struct form_world.
 */
#pragma once
#include "jdl/condor/condor.h"

struct cwl_job {
        const char *tool, *params; /* files; params may be NULL: an empty order */
};

/* Fills *ret as condor_parse does, with the lines of `o` added. *ret_command (may be NULL) gets the command
 * that runs, with the job order. Returns 0; or with err, which names file and line: -EINVAL, -E2BIG, or the
 * error of read_file. */
int cwl_parse(const struct form_world *w, const struct cwl_job *job, const struct condor_options *o,
              struct form *ret, struct buf *ret_command, struct err *err);
