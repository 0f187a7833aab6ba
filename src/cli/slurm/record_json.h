/* record_json: jobs as JSON, with the keys of Slurm's v0.0.38.
 */
#pragma once
#include "cli/slurm/record.h"

/* Opens a document. */
void record_json_begin(struct buf *out);
/* Appends a job; `more`: it follows another job. If not, the document is opened first. */
void record_json(const struct record *r, bool more, struct buf *out);
/* Closes the document, after opening it if it is empty. */
void record_json_end(struct buf *out);
/* Prints the first line of long listings: "Tue Nov 24 02:04:57 2026". */
void record_print_now(const struct cli *cli);
