/* history: the rows that jobs leave when they have ended. */
#pragma once
#include "base/str.h"
#include "core/model/job.h"
#include "core/model/names.h"

/* Writes the rows of some members that ended without a record. True: there are more. */
bool history_file_slice(struct core *c, uint64_t budget);
/* Files as a result's outputs are packed, as a list of ads. */
void history_print_files(struct buf *out, struct str packed);
void history_file(struct core *c, struct request *r, uint32_t member, enum job_state state, int64_t ended_ms,
                  const struct job *j, int32_t exit_code);
