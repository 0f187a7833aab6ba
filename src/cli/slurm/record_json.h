/* record_json: jobs as JSON, with the keys of Slurm's v0.0.38.
 */
#pragma once
#include "cli/slurm/record.h"

/* Opens a document. */
void record_json_begin(struct buf *out);
/* Appends a job; `more`: there is one before it. Without it the document is opened. */
void record_json(const struct record *r, bool more, struct buf *out);
/* Closes the document, which is opened if it is empty. */
void record_json_end(struct buf *out);
/* The line that long listings begin with: "Tue Nov 24 02:04:57 2026". */
void record_print_now(const struct cli *cli);
