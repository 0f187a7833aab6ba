/* placement_report: what the mover of a placement job has said that it moved or removed.
 *
 * The mover runs as the job's owner and writes into the job's sandbox, so its report is the owner's word: the
 * server bounds what it believes of it (core/lifecycle/lots.h).
 */
#pragma once
#include "base/str.h"

struct attempt;
/* Reads the report at the end of the job's standard output into the attempt's result. Nothing changes if
 * there is none. */
void placement_report_read(struct attempt *at);
