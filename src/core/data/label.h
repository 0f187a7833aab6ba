/* label: which labels a job's data has, and whether its outputs may go where they are meant to; for the files
 * of core/ only.
 *
 * Looked at is every URL and path that the job's attributes name for reading (TransferInput, In, Cmd, the
 * image), and every place for what it writes (OutputDestination, TransferOutputRemaps, Out, Err). A member's
 * labels are part of its class, whatever its author wrote or forgot.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "core/model/names.h"

/* The labels of a member's data, a bit each. 0; or CORE_INVALID with err: an output would go to a place that
 * does not carry them all, or DataLabels names one that is not configured. *ret is set in any case. */
int label_of(struct core *c, const struct request *r, const struct part *p, uint32_t member, uint64_t *ret,
             struct err *err);
/* May members of the part have different labels? */
bool label_differs(struct core *c, const struct part *p);
void label_print(const struct core *c, uint64_t labels, struct buf *out); /* "a,b" */
/* Those that the agent is cleared for: by the configuration, and not beyond core_agent_labels, whatever it
 * says itself. */
uint64_t label_cleared(const struct core *c, const char *agent);
/* 0; or CORE_INVALID with err: this new request would take labelled data to where it may not go. */
int label_refuse(struct core *c, const struct request *r, struct err *err);
