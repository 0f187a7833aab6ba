/* placement_report: the numbers of moved and removed bytes that the mover of a placement job reports.
 *
 * The mover runs as the job's owner and writes into the job's sandbox, so its report is not trusted: the
 * server limits what it accepts (core/lifecycle/lots.h).
 */
#pragma once
#include "base/str.h"

struct attempt;
/* Reads the report at the end of the job's standard output into the attempt's result. Nothing changes if
 * there is none. */
void placement_report_read(struct attempt *at);
