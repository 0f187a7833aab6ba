/* history: writes rows to history for jobs that have ended. */
#pragma once
#include "base/str.h"
#include "core/model/job.h"
#include "core/model/names.h"

/* Writes rows of members that ended without a record, at most `budget`. Returns whether there are more. */
bool history_file_slice(struct core *c, uint64_t budget);
/* Prints packed outputs of a result as a ClassAd list of ads. */
void history_print_files(struct buf *out, struct str packed);
/* Writes the row of one ended member. exit_code is used if j is NULL or has no result. No-op in replay. */
void history_file(struct core *c, struct request *r, uint32_t member, enum job_state state, int64_t ended_ms,
                  const struct job *j, int32_t exit_code);
