/* record_json: jobs as JSON, with the keys of Slurm's v0.0.38.
 */
#pragma once
#include "cli/slurm/record.h"

/* Appends a job as an object. */
void record_json(const struct record *r, struct buf *out);
/* Prints the first line of long listings: "Tue Nov 24 02:04:57 2026". */
void record_print_now(const struct cli *cli);
