/* account_json: jobs as JSON in the form of sacct, with the keys of Slurm's dbv0.0.38.
 */
#pragma once
#include "cli/slurm/record.h"

/* Appends a job as an object; with `steps`, the one step of a job that has begun is in it. */
void account_json(const struct record *r, bool steps, struct buf *out);
