/* show_job: the page of a job, for `drover show`. */
#pragma once
#include "cli/terminal/cli.h"

/* Appends the page of a job (docs/openapi.json, Job). Asks the server for its files, the reasons why it
 * waits and its output; unavailable parts are left out. */
void show_job(struct cli *cli, struct view job, struct buf *out);
