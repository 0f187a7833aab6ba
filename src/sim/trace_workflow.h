/* trace_workflow: workflow instances in the JSON of WfCommons (WfFormat 1.4 and 1.5).
 *
 * The reader takes tasks with their run times, cores and memory, the files they read and write with sizes,
 * and their parents and children. A file that no task writes exists from the start, at the home cluster's
 * store; copies of the same workflow share such files. Command lines and machines are ignored.
 */
#pragma once
#include "sim/workload.h"

#define SIM_WORKFLOW_BYTES_MAX (256u << 20)

struct sim_workflow_options {
        uint32_t cluster; /* home */
        uint32_t copies;  /* number of runs of the workflow; 0: 1 */
        int64_t every_ms; /* between their submissions */
        double hurry;     /* run times are divided by it; 0: 1 */
};
struct sim_workflow_header {
        size_t tasks, files; /* of one copy */
        size_t untimed;      /* tasks without a run time, which count as 0 s */
        size_t empty;        /* files without a size, or of size 0 */
};
/* Adds a workflow to the workload. 0; -EINVAL with err: "NAME:LINE: ..." if the text is no JSON, "NAME: task
 * "X": ..." if it is no workflow. */
int sim_workflow_read(struct sim_workload *w, const char *name, struct str text,
                      const struct sim_workflow_options *o, struct sim_workflow_header *ret, struct err *err);
